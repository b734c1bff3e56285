//! Makes a failing history short: drops acts as long as the same oracle still complains.

use std::ops::Range;

use crate::{
    history::History,
    play::{Keep, play},
};

/// Most plays that shrinking may take.
const PLAYS: usize = 300;

/// The shortest history found on which `oracle` still complains.
pub fn shrink(history: &History, oracle: &str) -> anyhow::Result<History> {
    let mut plays = 0;
    let mut fails = |candidate: &History| -> anyhow::Result<bool> {
        plays += 1;
        let violation = if plays > PLAYS {
            None
        } else {
            play(candidate, Keep::Hash)?.violation
        };
        Ok(violation.is_some_and(|violation| violation.oracle == oracle))
    };
    let mut best = history.clone();
    let mut size = best.acts.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.acts.len() {
            match without(&best, at..at + size) {
                Some(candidate) if fails(&candidate)? => best = candidate,
                _ => at += size,
            }
        }
        size /= 2;
    }
    if best.managers > 1 {
        let candidate = History {
            managers: 1,
            ..best.clone()
        };
        if fails(&candidate)? {
            best = candidate;
        }
    }
    Ok(best)
}

/// A history without some of its acts; `None` if all of these stay. Those that let go of what others hold do: without
/// them, a history that nobody could bring to its end would seem to fail for the same reason.
fn without(history: &History, acts: Range<usize>) -> Option<History> {
    let mut shorter = history.clone();
    let mut at = 0..;
    shorter
        .acts
        .retain(|act| at.next().is_some_and(|at| !acts.contains(&at)) || act.is_release());
    (shorter.acts.len() < history.acts.len()).then_some(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Act, Edit, What, generate};

    #[test]
    fn what_lets_go_of_something_stays() {
        let act = |edit| Act {
            at: 1,
            what: What::Edit(edit),
        };
        let mut history = generate(1);
        history.acts = vec![act(Edit::TooMuch), act(Edit::Enough(2)), act(Edit::Scale(5))];
        let shorter = without(&history, 0..2).unwrap();
        assert_eq!(shorter.acts, [act(Edit::Enough(2)), act(Edit::Scale(5))]);
        assert_eq!(without(&shorter, 0..1), None);
    }

    #[test]
    fn a_history_that_does_not_fail_stays_as_it_is() {
        let mut history = generate(1);
        history.acts.truncate(1);
        assert_eq!(shrink(&history, "none").unwrap(), history);
    }
}
