//! When a component begins anew whose request the server could not carry out.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(1000);

/// By place in the row of actors. The wait doubles while failures follow each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Retries(BTreeMap<usize, Retry>);

#[derive(Clone, Debug)]
struct Retry {
    wait: Duration,
    failed: Timestamp,
    at: Option<Timestamp>,
}

impl Retries {
    /// A request of an actor failed.
    pub(super) fn failed(&mut self, actor: usize, now: Timestamp) {
        let wait = match self.0.get(&actor) {
            Some(Retry { at: Some(_), .. }) => return,
            Some(last) if is_soon(last, now) => LONGEST.min(last.wait * 2),
            _ => FIRST,
        };
        let retry = Retry {
            wait,
            failed: now,
            at: now.checked_add(wait).ok(),
        };
        self.0.insert(actor, retry);
    }

    /// Whether an actor is to begin anew now; true once.
    pub(super) fn take(&mut self, actor: usize, now: Timestamp) -> bool {
        let retry = self.0.get_mut(&actor);
        retry.is_some_and(|retry| retry.at.take_if(|at| *at <= now).is_some())
    }

    /// When the actor begins anew.
    pub(super) fn due(&self, actor: usize) -> Option<Timestamp> {
        self.0.get(&actor)?.at
    }
}

fn is_soon(last: &Retry, now: Timestamp) -> bool {
    let calm = last.failed.checked_add(last.wait * 2);
    calm.is_ok_and(|calm| now <= calm)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::Retries;

    #[test]
    fn the_wait_doubles_while_failures_follow_each_other() {
        let mut retries = Retries::default();
        let mut now = Timestamp::UNIX_EPOCH;
        for seconds in [1, 2, 4, 8] {
            retries.failed(0, now);
            retries.failed(0, now);
            assert!(!retries.take(0, now));
            now += Duration::from_secs(seconds);
            assert_eq!(retries.due(0), Some(now));
            assert!(retries.take(0, now) && !retries.take(0, now));
        }
        now += Duration::from_mins(1);
        retries.failed(0, now);
        assert_eq!(retries.due(0), Some(now + Duration::from_secs(1)), "it was calm");
        assert_eq!(retries.due(1), None);
    }
}
