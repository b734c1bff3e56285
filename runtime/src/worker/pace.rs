//! How often one owner is planned while changes pour in.
//!
//! Each change of each of `n` pods asks for a plan, and a plan looks at all `n`: unpaced, a rollout costs `n²`. A fixed
//! pause only hides that until `n` is large, so the pause grows with what the last plan took.

use std::time::Duration;

/// Shortest time between two plans of one owner.
pub(super) const SHORTEST: Duration = Duration::from_millis(50);

/// Longest time: what a large set can afford to learn late.
const LONGEST: Duration = Duration::from_secs(1);

/// One part in so many of a worker's time goes into plans of one owner.
const SHARE: u32 = 50;

/// What the last two plans of an owner took. One alone proves little: a thread that was preempted took long, too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace([Duration; 2]);

impl Pace {
    /// A plan took so long.
    pub(super) fn took(&mut self, time: Duration) {
        self.0 = [time, self.0[0]];
    }

    /// Time from one plan to the next.
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
            pace.took(took);
            pace.took(took);
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
    fn one_slow_plan_slows_nothing_down() {
        let mut pace = Pace::default();
        pace.took(Duration::from_millis(1));
        pace.took(Duration::from_millis(500));
        assert_eq!(pace.pause(), Duration::from_millis(50));
    }
}
