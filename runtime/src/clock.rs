//! What time it is: for what is written into objects and for decisions that compare with it.
//!
//! Nothing else in here reads the system's clock. Spans are measured by the timers' own clock, which a test can pause;
//! a clock [from](Clock::starting_at) that one makes a whole process run in virtual time.

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock; cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Option<(Timestamp, Instant)>);

impl Clock {
    /// The system's.
    pub const SYSTEM: Self = Self(None);

    /// Shows `origin` now, and goes as the async runtime's timers go.
    pub fn starting_at(origin: Timestamp) -> Self {
        Self(Some((origin, Instant::now())))
    }

    /// The time.
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
    async fn a_virtual_clock_goes_with_the_timers() {
        let origin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(origin);
        assert_eq!(clock.now(), origin);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(clock.now(), origin + Duration::from_hours(1));
    }
}
