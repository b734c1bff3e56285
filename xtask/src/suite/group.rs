//! A command and what it starts as one process group, which an interrupt ends as a whole.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kruise_e2e::process::{self, Signal};
use kruise_e2e::wait;

use crate::interrupt;

/// How long an interrupted suite may take to end by itself, and its output to arrive after it has ended.
const GRACE: Duration = Duration::from_secs(10);

/// How a command ended and what it printed. A command that took too long was ended by a signal, and the last line
/// says so.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
}

/// Is each line shown as it comes?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Shown,
    Kept,
}

/// Runs a command until it ends, or `deadline` is reached: then it is ended, and so has failed.
pub(crate) fn run(command: &mut Command, deadline: Instant, output: Output) -> Result<Ended> {
    let mut child = command
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run the tests")?;
    let lines = child.stdout.take().map(|lines| read(lines, output));
    let limit = deadline.saturating_duration_since(Instant::now());
    let ended = interrupt::wait_until("the tests end", limit, || Ok(child.try_wait()?));
    if ended.is_err() {
        process::signal_group(child.id(), Signal::Term)?;
        // What does not stop is killed.
        let _stopped = wait::until("the tests stop", GRACE, || Ok(child.try_wait()?));
    }
    // cargo may be gone before what it started; without anybody left the signal fails, as it should.
    let _nobody_left = process::signal_group(child.id(), Signal::Kill);
    let status = child.wait()?;
    let mut output = lines.map(collect).unwrap_or_default();
    if let Err(error) = ended {
        writeln!(output, "{error:#}")?;
    }
    Ok(Ended { status, output })
}

/// Passes on each line as it comes.
fn read(output: impl std::io::Read + Send + 'static, shown: Output) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line).into_owned();
            line.clear();
            if shown == Output::Shown {
                print!("{text}");
            }
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    lines
}

/// All lines; something that outlives the command and keeps its output open is not waited for.
#[expect(clippy::needless_pass_by_value, reason = "the channel ends here")]
fn collect(lines: Receiver<String>) -> String {
    let mut output = String::new();
    while let Ok(line) = lines.recv_timeout(GRACE) {
        output.push_str(&line);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_prints_comes_back_with_its_status() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; printf 'two \\377'; exit 3"]);
        let ended = run(
            &mut command,
            Instant::now() + Duration::from_mins(5),
            Output::Shown,
        )
        .unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!(ended.output, "one\ntwo \u{fffd}");
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600"]);
        let ended = run(&mut command, Instant::now(), Output::Kept).unwrap();
        assert!(!ended.status.success());
        assert!(ended.output.contains("the tests end"), "{}", ended.output);
    }
}
