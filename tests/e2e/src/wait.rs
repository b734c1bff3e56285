//! Waiting with a deadline: the only place where the suite sleeps.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Pause after the first attempt, and the longest one. Pauses grow: many tests wait at a time, and some attempts start a program.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];

/// Polls until `poll` yields a value; after `limit` fails with `what` and the last error, if the last attempt failed.
pub fn until<T>(what: &str, limit: Duration, mut poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + limit;
    let [mut pause, longest] = PAUSES;
    loop {
        let last = match poll() {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => String::new(),
            Err(error) => format!(": {error:#}"),
        };
        if Instant::now() >= deadline {
            bail!("not within {} s: {what}{last}", limit.as_secs());
        }
        std::thread::sleep(pause);
        pause = longest.min(pause * 3 / 2);
    }
}

/// Polls until `condition` holds; see [`until`].
pub fn until_true(what: &str, limit: Duration, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    until(what, limit, || Ok(condition()?.then_some(())))
}

/// Lets real time pass, where the absence of an action is what is observed.
pub fn observe_for(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
