//! How long to wait between failed attempts to list or watch.

use std::time::Duration;

/// Delay before the first retry, as in client-go.
const BASE: Duration = Duration::from_millis(800);
/// Largest delay before jitter, as in client-go.
const CAP: Duration = Duration::from_secs(30);

/// Exponential delays: 800 ms, 1.6 s, … 30 s, each stretched by up to 100 % of jitter.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Starts at 800 ms.
    pub const fn new() -> Self {
        Self { next: BASE }
    }

    /// The delay before the next attempt, between once and twice the current step; `jitter` is a uniform random
    /// number, so that many clients of one failed server do not retry at the same time.
    pub fn delay(&mut self, jitter: u64) -> Duration {
        let step = self.next;
        self.next = step.saturating_mul(2).min(CAP);
        step.saturating_add(fraction_of(step, jitter))
    }

    /// Starts over at the shortest delay.
    pub fn reset(&mut self) {
        self.next = BASE;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// `whole × jitter / 2⁶⁴`, in integers, so that the result is the same on every machine.
pub(crate) fn fraction_of(whole: Duration, jitter: u64) -> Duration {
    let nanos = (whole.as_nanos() * u128::from(jitter)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_and_start_over_after_reset() {
        let mut backoff = Backoff::new();
        let millis: Vec<_> = (0..8).map(|_| backoff.delay(0).as_millis()).collect();
        assert_eq!(millis, [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        backoff.reset();
        assert_eq!(backoff.delay(0), BASE);
    }

    #[test]
    fn jitter_stretches_a_delay_to_less_than_twice_its_step() {
        assert_eq!(Backoff::new().delay(1 << 63), Duration::from_millis(1200));
        let longest = Backoff::new().delay(u64::MAX);
        assert!(
            longest < Duration::from_millis(1600) && longest > Duration::from_millis(1599),
            "{longest:?}"
        );
    }
}
