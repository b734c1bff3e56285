//! The interval between plans of one owner while changes keep coming.
//!
//! Each change of each of `n` pods requests a plan, and a plan reads all `n` pods. Without a pause a rollout would cost
//! `n²`. A fixed pause would be too short for a large `n`, so the pause is proportional to the duration of the last
//! plan.

use std::time::Duration;

/// Shortest time between two plans of one owner.
pub(super) const SHORTEST: Duration = Duration::from_millis(50);

/// Longest time between two plans of one owner, so that a large set still reacts within a second.
const LONGEST: Duration = Duration::from_secs(1);

/// Plans of one owner take at most one part in this many of a worker's time.
const SHARE: u32 = 50;

/// Durations of the last two plans of an owner. A single one may be long because the thread was preempted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace([Duration; 2]);

impl Pace {
    /// Records the duration of a plan.
    pub(super) fn record(&mut self, duration: Duration) {
        self.0 = [duration, self.0[0]];
    }

    /// Time between two plans.
    pub(super) fn pause(self) -> Duration {
        let [last, before] = self.0;
        last.min(before).saturating_mul(SHARE).clamp(SHORTEST, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_one_owner_take_a_fiftieth_of_the_time_within_limits() {
        let pause = |took| {
            let mut pace = Pace::default();
            pace.record(took);
            pace.record(took);
            pace.pause()
        };
        let millis = Duration::from_millis;
        assert_eq!(pause(Duration::ZERO), millis(50));
        assert_eq!(pause(millis(1)), millis(50));
        assert_eq!(pause(millis(4)), millis(200));
        assert_eq!(pause(millis(30)), millis(1000));
        assert_eq!(pause(Duration::MAX), millis(1000));
    }

    #[test]
    fn a_single_slow_plan_does_not_extend_the_pause() {
        let mut pace = Pace::default();
        pace.record(Duration::from_millis(1));
        pace.record(Duration::from_millis(500));
        assert_eq!(pace.pause(), Duration::from_millis(50));
    }
}
