//! The settings of a queue.

use std::time::Duration;

/// Rates and shares of a [`Queue`](crate::Queue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Delay of a key's first rate-limited push; doubles with each further one.
    pub backoff_base: Duration,
    /// Longest delay of a failing key.
    pub backoff_cap: Duration,
    /// Time in which the bucket shared by all keys gains one token; zero disables the bucket.
    pub token_interval: Duration,
    /// Tokens the bucket holds when full.
    pub burst: u32,
    /// Live keys returned in a row while an initial key is ready, before the initial key has its turn.
    pub live_per_initial: u32,
}

impl Config {
    /// client-go's default controller rate limiter: 5 ms doubling up to 1000 s for each key, 10 per second with a burst
    /// of 100 for all. OpenKruise uses the same numbers. An initial key has every ninth turn.
    pub const CLIENT_GO: Self = Self {
        backoff_base: Duration::from_millis(5),
        backoff_cap: Duration::from_secs(1000),
        token_interval: Duration::from_millis(100),
        burst: 100,
        live_per_initial: 8,
    };
}
