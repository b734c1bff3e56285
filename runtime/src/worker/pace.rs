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

/// Time from one plan to the next of an owner whose last plan took so long.
pub(super) fn after(took: Duration) -> Duration {
    took.saturating_mul(SHARE).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_one_owner_take_a_fiftieth_of_the_time_within_limits() {
        let millis = Duration::from_millis;
        assert_eq!(after(Duration::ZERO), millis(50));
        assert_eq!(after(millis(1)), millis(50));
        assert_eq!(after(millis(4)), millis(200));
        assert_eq!(after(millis(30)), millis(1000));
        assert_eq!(after(Duration::MAX), millis(1000));
    }
}
