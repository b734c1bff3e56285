//! When a budget that refuses has another event.
//!
//! A rollout or a drain asks again and again for each of its pods. How often that was refused is in the metric and in
//! the protection log; an event says that the budget refuses at all, and is renewed while it does.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Shortest time between two events of one budget.
const INTERVAL: Duration = Duration::from_secs(10);

/// When budgets had their last event, by uid.
#[derive(Default)]
pub(super) struct Paced(Mutex<BTreeMap<Box<str>, Instant>>);

impl Paced {
    /// Is another event of this budget due? If so, it is written now.
    pub(super) fn is_due(&self, budget: &str, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| now.duration_since(*at) < INTERVAL;
        if last.get(budget).is_some_and(is_recent) {
            return false;
        }
        last.retain(|_, at| is_recent(at));
        last.insert(budget.into(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_budget_has_one_event_in_ten_seconds_and_is_forgotten_after_that() {
        let (paced, start) = (Paced::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(paced.is_due("a", at(0)));
        assert!(!paced.is_due("a", at(9)) && paced.is_due("b", at(9)));
        assert!(paced.is_due("a", at(10)));
        assert!(!paced.is_due("a", at(19)) && paced.is_due("c", at(20)));
        assert_eq!(paced.0.lock().unwrap().len(), 1, "those of the last ten seconds");
    }
}
