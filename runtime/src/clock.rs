//! The current time, for timestamps in objects and for comparisons with them.
//!
//! No other code in this crate reads the system clock. Durations are measured by the clock of tokio's timers, which
//! a test can pause. With [`Clock::starting_at`] timestamps follow that clock too, so a whole process runs in
//! virtual time.

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock; cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Option<(Timestamp, Instant)>);

impl Clock {
    /// The system clock.
    pub const SYSTEM: Self = Self(None);

    /// A clock that is `origin` now and advances with tokio's timers.
    pub fn starting_at(origin: Timestamp) -> Self {
        Self(Some((origin, Instant::now())))
    }

    /// The current time.
    #[allow(clippy::disallowed_methods, reason = "here time comes from")]
    pub fn now(self) -> Timestamp {
        match self.0 {
            None => Timestamp::now(),
            // Out of range is beyond the year 9999.
            Some((origin, start)) => origin.checked_add(start.elapsed()).unwrap_or(Timestamp::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_advances_with_the_timers() {
        let origin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(origin);
        assert_eq!(clock.now(), origin);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(clock.now(), origin + Duration::from_hours(1));
    }
}
