//! Makes a failing history short: drops acts as long as the same oracle still complains.

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
            let mut candidate = best.clone();
            candidate.acts.drain(at..(at + size).min(best.acts.len()));
            if fails(&candidate)? {
                best = candidate;
            } else {
                at += size;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::generate;

    #[test]
    fn a_history_that_does_not_fail_stays_as_it_is() {
        let mut history = generate(1);
        history.acts.truncate(1);
        assert_eq!(shrink(&history, "none").unwrap(), history);
    }
}
