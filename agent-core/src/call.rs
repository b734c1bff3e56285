//! One call of the agent: when it is, and what it leads to.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{Config, Effect, EventNote, Level};

/// One call of [`Agent::handle`](crate::Agent::handle).
pub(crate) struct Call<'a> {
    pub(crate) now: Timestamp,
    pub(crate) config: &'a Config,
    effects: &'a mut Vec<Effect>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(now: Timestamp, config: &'a Config, effects: &'a mut Vec<Effect>) -> Self {
        Self { now, config, effects }
    }

    pub(crate) fn emit(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn event(&mut self, note: EventNote) {
        self.effects.push(Effect::Event(note));
    }

    pub(crate) fn warn(&mut self, text: String) {
        self.effects.push(Effect::Log(Level::Warning, text));
    }

    pub(crate) fn info(&mut self, text: String) {
        self.effects.push(Effect::Log(Level::Info, text));
    }

    /// The time after a delay.
    pub(crate) fn after(&self, delay: Duration) -> Timestamp {
        after(self.now, delay)
    }

    /// When a write is tried again that has failed so often: up to twice the delay, so that the agents of many
    /// nodes do not all try at the same time.
    pub(crate) fn retry_of_write(&self, failures: u32) -> Timestamp {
        let delay = backoff(FIRST_WRITE, LAST_WRITE, failures);
        let spread = go_compat::hash::fnv1a_32(&(self.config.seed ^ u64::from(failures)).to_le_bytes());
        let part = u128::from(spread) * delay.as_millis() / (u128::from(u32::MAX) + 1);
        self.after(delay + Duration::from_millis(u64::try_from(part).unwrap_or_default()))
    }
}

/// Delays of writes that fail.
const FIRST_WRITE: Duration = Duration::from_millis(500);
const LAST_WRITE: Duration = Duration::from_secs(50);

/// A time after another one. Beyond the end of the calendar there is none: then that end.
pub(crate) fn after(start: Timestamp, delay: Duration) -> Timestamp {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    start.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// The form in which times are stored.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The delay after so many failures, of which the first is number 1: doubled each time.
pub(crate) fn backoff(first: Duration, last: Duration, failures: u32) -> Duration {
    let factor = 2_u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(last)
}

/// The earlier of two times, where there are any.
pub(crate) fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_last_one() {
        let seconds = |failures| backoff(Duration::from_secs(1), Duration::from_secs(30), failures).as_secs();
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 7, 99].map(seconds),
            [1, 2, 4, 8, 16, 30, 30, 30]
        );
    }

    #[test]
    fn writes_are_retried_at_times_that_differ_between_nodes() {
        let retry = |node: &str, failures| {
            let config = Config::new(node);
            let call = Call {
                now: Timestamp::UNIX_EPOCH,
                config: &config,
                effects: &mut Vec::new(),
            };
            call.retry_of_write(failures).as_millisecond()
        };
        assert!((500..1_000).contains(&retry("a", 1)) && (50_000..100_000).contains(&retry("a", 20)));
        assert_ne!(retry("a", 1), retry("b", 1));
    }
}
