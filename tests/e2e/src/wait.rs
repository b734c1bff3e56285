//! Waiting with a deadline: the only place where the suite sleeps.
//!
//! A wait that fails is what makes a red run expensive. So it ends as soon as nothing that it reads has changed for
//! a while: what it waits for takes seconds, and each step on the way there shows in some object.

use std::ops::{Add, Mul};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::reads;

/// Pause after the first attempt, and the longest one. Pauses grow: many tests wait at a time, and some attempts
/// start a program.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];

/// For what normally takes seconds: the machine may be busy with other tests.
pub const LIMIT: Patience = Patience {
    limit: Duration::from_mins(5),
    stall: Duration::from_mins(1),
};

/// For what may come a minute after the last change before it: garbage collection pauses so long after a definition
/// has changed, and what a manager cannot watch it reads once a minute.
pub const QUIET: Patience = LIMIT.quiet_for(Duration::from_mins(2));

/// How long something is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// At most so long.
    limit: Duration,
    /// At most so long after the last change of what is read.
    stall: Duration,
}

impl Patience {
    /// The same, ended by a stall of this length.
    const fn quiet_for(self, stall: Duration) -> Self {
        Self { stall, ..self }
    }
}

/// A plain time is a deadline and nothing else.
impl From<Duration> for Patience {
    fn from(limit: Duration) -> Self {
        Self { limit, stall: limit }
    }
}

/// A later deadline, for what takes longer the more of it there is.
impl Add<Duration> for Patience {
    type Output = Self;

    fn add(self, more: Duration) -> Self {
        let limit = self.limit + more;
        Self { limit, ..self }
    }
}

/// As much more of both.
impl Mul<u32> for Patience {
    type Output = Self;

    fn mul(self, factor: u32) -> Self {
        Self {
            limit: self.limit * factor,
            stall: self.stall * factor,
        }
    }
}

/// Polls until `poll` yields a value. Fails with `what` and the error of the last attempt, if it had one, when the
/// patience is over.
///
/// What `poll` reads counts as far as this crate reads it, in the same thread: with [`crate::kubectl::Kubectl`], a
/// watch or an audit log. A poll that reads nothing of these has a deadline only.
pub fn until<T>(
    what: &str,
    patience: impl Into<Patience>,
    poll: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    by(&mut Real(Instant::now()), what, patience.into(), poll)
}

/// Polls until `condition` holds; see [`until`].
pub fn until_true(
    what: &str,
    patience: impl Into<Patience>,
    mut condition: impl FnMut() -> Result<bool>,
) -> Result<()> {
    until(what, patience, || Ok(condition()?.then_some(())))
}

/// Lets real time pass, where the absence of an action is what is observed.
pub fn observe_for(time: Duration) {
    std::thread::sleep(time);
}

trait Clock {
    /// The time since the wait began.
    fn now(&self) -> Duration;
    fn sleep(&mut self, time: Duration);
}

struct Real(Instant);

impl Clock for Real {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

fn by<T>(
    clock: &mut impl Clock,
    what: &str,
    patience: Patience,
    mut poll: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let Patience { limit, stall } = patience;
    let [mut pause, longest] = PAUSES;
    let mut last_read = None;
    let mut changed = clock.now();
    loop {
        let (polled, read) = reads::during(&mut poll);
        let last = match polled {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => String::new(),
            Err(error) => format!(": {error:#}"),
        };
        let now = clock.now();
        if read.is_none() || read != last_read {
            last_read = read;
            changed = now;
        }
        if now >= limit {
            bail!("not within {} s: {what}{last}", limit.as_secs());
        }
        if now >= changed + stall {
            bail!("nothing changed for {} s: {what}{last}", stall.as_secs());
        }
        clock.sleep(pause);
        pause = longest.min(pause * 3 / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that only sleeping moves.
    #[derive(Default)]
    struct Fake(Duration);

    impl Clock for Fake {
        fn now(&self) -> Duration {
            self.0
        }

        fn sleep(&mut self, time: Duration) {
            self.0 += time;
        }
    }

    /// Polls with [`LIMIT`] what is never there, and reads what `state` says for the number of the attempt.
    fn waited(state: impl Fn(u32) -> Option<u32>) -> (u64, String) {
        let mut clock = Fake::default();
        let mut attempt = 0;
        let ended = by(&mut clock, "pods are ready", LIMIT, || {
            attempt += 1;
            if let Some(state) = state(attempt) {
                reads::note(&state);
            }
            Ok(None::<()>)
        });
        (clock.0.as_secs(), ended.unwrap_err().to_string())
    }

    #[test]
    fn the_first_value_ends_the_wait() {
        let mut left = 2;
        let value = until("counts down", Duration::from_secs(5), || {
            left -= 1;
            Ok((left == 0).then_some("done"))
        });
        assert_eq!(value.unwrap(), "done");
    }

    #[test]
    fn a_missed_deadline_names_what_was_awaited_and_the_last_error() {
        let error = until_true("pods are ready", Duration::ZERO, || bail!("connection refused")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not within 0 s: pods are ready: connection refused"
        );
    }

    #[test]
    fn a_wait_ends_a_minute_after_the_last_change_of_what_it_reads() {
        let stalled = "nothing changed for 60 s: pods are ready";
        assert_eq!(waited(|_| Some(1)), (60, stalled.into()));
        // The hundredth attempt is half a minute after the first.
        let (seconds, error) = waited(|attempt| Some(attempt.min(100)));
        assert!(
            (90..=100).contains(&seconds) && error == stalled,
            "{seconds} {error}"
        );
    }

    #[test]
    fn a_wait_whose_reads_change_or_that_reads_nothing_has_its_whole_time() {
        let over = "not within 300 s: pods are ready";
        assert_eq!(waited(Some), (300, over.into()));
        assert_eq!(waited(|attempt| Some(attempt % 2)), (300, over.into()));
        assert_eq!(waited(|_| None), (300, over.into()));
    }

    #[test]
    fn more_patience_is_later_and_a_plain_time_a_deadline() {
        let minutes = |limit, stall| Patience {
            limit: Duration::from_mins(limit),
            stall: Duration::from_mins(stall),
        };
        assert_eq!(QUIET, minutes(5, 2));
        assert_eq!(LIMIT + Duration::from_mins(1), minutes(6, 1));
        assert_eq!(LIMIT * 3, minutes(15, 3));
        assert_eq!(Patience::from(Duration::from_mins(10)), minutes(10, 10));
    }
}
