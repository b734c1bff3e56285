//! Ctrl-C, a termination and a lost terminal as requests to stop.
//!
//! Once a command owns processes, dying at once would orphan them. From [`listen`] on a signal only leaves its number;
//! waits see it and fail, and on the way out of `main` every owner stops what it started. Whoever stops things does
//! not look at the number, so that a second signal cannot interrupt the stopping.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kruise_e2e::wait;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Of this process.
static SIGNALS: OnceLock<Signals> = OnceLock::new();

/// From now on signals are requests.
pub(crate) fn listen() -> Result<()> {
    if SIGNALS.get().is_some() {
        return Ok(());
    }
    let Signals(last) = SIGNALS.get_or_init(Signals::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(signal, Arc::clone(last), signal as usize)
            .context("cannot handle signals")?;
    }
    Ok(())
}

/// Fails once a signal has come.
pub(crate) fn check() -> Result<()> {
    signals().check()
}

/// As [`wait::until`], ended by a signal.
pub(crate) fn wait_until<T>(
    what: &str,
    limit: Duration,
    look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    signals().wait_until(what, limit, look)
}

/// As [`wait::until_true`], ended by a signal.
pub(crate) fn wait_until_true(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> Result<bool>,
) -> Result<()> {
    wait_until(what, limit, || Ok(condition()?.then_some(())))
}

/// How the process ends: with the result of its command, or as one that a signal ended.
pub(crate) fn exit_code(result: Result<()>) -> ExitCode {
    signals().exit_code(result)
}

fn signals() -> Signals {
    SIGNALS.get().cloned().unwrap_or_default()
}

/// To standard error, if it is still there: a lost terminal is one of the reasons to be here.
fn report(text: &str) {
    let _lost = writeln!(std::io::stderr(), "{text}");
}

/// The number of the last signal, 0 without one.
#[derive(Clone, Debug, Default)]
struct Signals(Arc<AtomicUsize>);

impl Signals {
    fn last(&self) -> Option<u8> {
        let number = u8::try_from(self.0.load(Ordering::SeqCst)).ok();
        number.filter(|number| *number != 0)
    }

    fn check(&self) -> Result<()> {
        match self.last() {
            None => Ok(()),
            Some(number) => bail!("interrupted by signal {number}"),
        }
    }

    fn wait_until<T>(
        &self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        wait::until(what, limit, || match self.check() {
            Ok(()) => look().map(|found| found.map(Ok)),
            Err(interrupted) => Ok(Some(Err(interrupted))),
        })?
    }

    fn exit_code(&self, result: Result<()>) -> ExitCode {
        match (result, self.last()) {
            (Ok(()), _) => ExitCode::SUCCESS,
            // What fails after a signal fails because of it: a terminal interrupts the children too.
            (Err(_), Some(number)) => {
                report("interrupted");
                ExitCode::from(128 + number)
            }
            (Err(error), None) => {
                report(&format!("error: {error:#}"));
                ExitCode::FAILURE
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_signal_a_wait_goes_on_and_an_error_is_a_failure() {
        let none = Signals::default();
        let mut left = 2;
        let value = none.wait_until("counts down", Duration::from_secs(5), || {
            left -= 1;
            Ok((left == 0).then_some("done"))
        });
        assert_eq!(value.unwrap(), "done");
        assert_eq!(none.exit_code(Ok(())), ExitCode::SUCCESS);
        assert_eq!(
            none.exit_code(none.wait_until::<()>("never", Duration::ZERO, || Ok(None))),
            ExitCode::FAILURE
        );
    }

    #[test]
    fn a_signal_ends_a_wait_at_once_and_gives_the_exit_code_of_a_shell() {
        let interrupted = Signals::default();
        let result = interrupted.wait_until::<()>("never", Duration::from_mins(5), || {
            interrupted.0.store(SIGTERM as usize, Ordering::SeqCst);
            Ok(None)
        });
        assert!(result.as_ref().unwrap_err().to_string().contains("signal 15"));
        assert_eq!(interrupted.exit_code(result), ExitCode::from(143));
        assert_eq!(
            interrupted.exit_code(Ok(())),
            ExitCode::SUCCESS,
            "it was done before it was seen"
        );
    }
}
