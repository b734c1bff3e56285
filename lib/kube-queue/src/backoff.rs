//! Exponential backoff of each key.

use std::collections::BTreeMap;
use std::time::Duration;

/// Exponential delay of each key, by its failures since the last [`Backoff::forget`].
#[derive(Clone, Debug)]
pub struct Backoff<K> {
    base: Duration,
    cap: Duration,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord + Clone> Backoff<K> {
    /// Delays `base`, `2 × base`, `4 × base`, … up to `cap`.
    pub const fn new(base: Duration, cap: Duration) -> Self {
        Self {
            base,
            cap,
            failures: BTreeMap::new(),
        }
    }

    /// Counts a failure and returns the delay before the retry.
    pub fn fail(&mut self, key: &K) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let factor = 2u32.checked_pow(*failures);
        *failures = failures.saturating_add(1);
        factor
            .map_or(self.cap, |factor| self.base.saturating_mul(factor))
            .min(self.cap)
    }

    /// Failures since the last [`Backoff::forget`].
    pub fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    /// Resets the key. Otherwise a key that is never pushed again would stay in memory.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_5_ms_to_1000_s_for_each_key_and_start_over_when_forgotten() {
        let mut backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(1000));
        let millis: Vec<_> = (0..4).map(|_| backoff.fail(&"a").as_millis()).collect();
        assert_eq!(millis, [5, 10, 20, 40]);
        assert_eq!(backoff.fail(&"b"), Duration::from_millis(5));
        for _ in 0..13 {
            backoff.fail(&"a");
        }
        assert_eq!(backoff.fail(&"a"), Duration::from_millis(5 << 17));
        for _ in 0..100 {
            assert_eq!(backoff.fail(&"a"), Duration::from_secs(1000));
        }
        assert_eq!((backoff.failures(&"a"), backoff.failures(&"c")), (118, 0));
        backoff.forget(&"a");
        assert_eq!(backoff.fail(&"a"), Duration::from_millis(5));
    }
}
