//! The token bucket shared by all rate-limited pushes.

use std::time::Duration;

/// A token bucket with reservations: each one succeeds and returns the time to wait for its token.
///
/// The state is the time at which the bucket is full again, so no token count needs rounding.
#[derive(Clone, Debug)]
pub struct Bucket {
    interval: Duration,
    /// Time to refill an empty bucket, less one token.
    depth: Duration,
    full_at: Duration,
}

impl Bucket {
    /// A full bucket of `burst` tokens (at least one) that gains a token every `interval`. With a zero interval no
    /// reservation waits.
    pub const fn new(interval: Duration, burst: u32) -> Self {
        let depth = interval.saturating_mul(burst.saturating_sub(1));
        Self {
            interval,
            depth,
            full_at: Duration::ZERO,
        }
    }

    /// Reserves one token and returns the time from `now` until it is available.
    pub fn reserve(&mut self, now: Duration) -> Duration {
        let full_at = self.full_at.max(now);
        self.full_at = full_at.saturating_add(self.interval);
        full_at.saturating_sub(self.depth).saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_reservations_queue_at_the_rate() {
        let mut bucket = Bucket::new(Duration::from_millis(100), 100);
        let now = Duration::from_secs(7);
        assert!((0..100).all(|_| bucket.reserve(now).is_zero()));
        assert_eq!(bucket.reserve(now), Duration::from_millis(100));
        assert_eq!(bucket.reserve(now), Duration::from_millis(200));
    }

    #[test]
    fn idle_time_refills_up_to_the_burst_and_no_further() {
        let mut bucket = Bucket::new(Duration::from_millis(100), 2);
        let waits: Vec<_> = (0..3)
            .map(|_| bucket.reserve(Duration::ZERO).as_millis())
            .collect();
        assert_eq!(waits, [0, 0, 100]);
        let hour = Duration::from_hours(1);
        let waits: Vec<_> = (0..3).map(|_| bucket.reserve(hour).as_millis()).collect();
        assert_eq!(waits, [0, 0, 100]);
    }

    #[test]
    fn without_an_interval_nothing_waits() {
        let mut bucket = Bucket::new(Duration::ZERO, 0);
        assert!((0..1000).all(|_| bucket.reserve(Duration::ZERO).is_zero()));
    }
}
