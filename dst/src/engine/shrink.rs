//! Makes a failing scenario short: drops steps as long as the same oracle still fails it.

use std::ops::Range;

use super::{
    play::{Keep, play},
    scenario::Scenario,
    subject::Subjects,
};

/// Most plays that shrinking may take.
const PLAYS: usize = 300;

/// The shortest scenario found that `oracle` still fails.
pub fn shrink(subjects: Subjects, scenario: &Scenario, oracle: &str) -> anyhow::Result<Scenario> {
    let mut plays = 0;
    let mut fails = |candidate: &Scenario| -> anyhow::Result<bool> {
        plays += 1;
        let violation = if plays > PLAYS {
            None
        } else {
            play(subjects, candidate, Keep::Hash)?.violation
        };
        Ok(violation.is_some_and(|violation| violation.oracle == oracle))
    };
    let mut best = scenario.clone();
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            match without(subjects, &best, at..at + size) {
                Some(candidate) if fails(&candidate)? => best = candidate,
                _ => at += size,
            }
        }
        size /= 2;
    }
    if best.managers > 1 {
        let candidate = Scenario {
            managers: 1,
            ..best.clone()
        };
        if fails(&candidate)? {
            best = candidate;
        }
    }
    Ok(best)
}

/// A scenario without some of its steps; `None` if all of these stay. Those that end what others keep from its end do:
/// without them, a scenario that could never end would seem to fail for the same reason.
fn without(subjects: Subjects, scenario: &Scenario, steps: Range<usize>) -> Option<Scenario> {
    let mut shorter = scenario.clone();
    let mut at = 0..;
    shorter
        .steps
        .retain(|step| at.next().is_some_and(|at| !steps.contains(&at)) || subjects.is_release(step));
    (shorter.steps.len() < scenario.steps.len()).then_some(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        engine::scenario::{Action, Step},
        subjects::{
            ALL,
            cloneset::{draft::NAME, edit::Edit},
        },
    };

    #[test]
    fn what_ends_something_stays() {
        let step = |edit| Step {
            at: 1,
            what: Action::edit(NAME, &edit),
        };
        let mut scenario = ALL.scenario(ALL.seed("cloneset/1").unwrap()).unwrap();
        scenario.steps = vec![step(Edit::TooMuch), step(Edit::Enough(2)), step(Edit::Scale(5))];
        let shorter = without(ALL, &scenario, 0..2).unwrap();
        assert_eq!(shorter.steps, [step(Edit::Enough(2)), step(Edit::Scale(5))]);
        assert_eq!(without(ALL, &shorter, 0..1), None);
    }

    #[test]
    fn a_scenario_that_does_not_fail_stays_as_it_is() {
        let mut scenario = ALL.scenario(ALL.seed("cloneset/1").unwrap()).unwrap();
        scenario.steps.truncate(1);
        assert_eq!(shrink(ALL, &scenario, "none").unwrap(), scenario);
    }
}
