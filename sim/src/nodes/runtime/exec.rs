//! Commands in containers. No process runs: what a command does is read from its words.

use std::fmt::Write;
use std::time::Duration;

use super::call::{Exec, Output};
use crate::nodes::kubelet::command_end;

/// What a command will leave, and how long it takes; `None` for without end.
pub(super) fn run(exec: &Exec, environment: &[(String, String)]) -> (Output, Option<Duration>) {
    if let [program] = &exec.command[..]
        && program.rsplit('/').next() == Some("env")
    {
        let mut stdout = String::new();
        for (name, value) in environment {
            let _infallible = writeln!(stdout, "{name}={value}");
        }
        let output = Output {
            stdout,
            ..Output::default()
        };
        return (output, Some(Duration::ZERO));
    }
    let Some((takes, code)) = command_end(&exec.command) else {
        return (Output::default(), None);
    };
    let output = Output {
        exit_code: i32::try_from(code).unwrap_or(i32::MAX),
        ..Output::default()
    };
    (output, Some(takes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(command: &[&str]) -> (i32, String, Option<u64>) {
        let exec = Exec {
            container: String::new(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            timeout: Duration::ZERO,
        };
        let environment = [("A", "1"), ("B", "x\ny")].map(|(name, value)| (name.into(), value.into()));
        let (output, takes) = run(&exec, &environment);
        (
            output.exit_code,
            output.stdout,
            takes.map(|takes| takes.as_secs()),
        )
    }

    #[test]
    fn env_prints_the_environment_and_words_say_how_other_commands_end() {
        assert_eq!(left(&["env"]), (0, "A=1\nB=x\ny\n".into(), Some(0)));
        assert_eq!(left(&["/usr/bin/env"]).1, "A=1\nB=x\ny\n");
        assert_eq!(left(&["true"]), (0, String::new(), Some(0)));
        assert_eq!(
            left(&["sh", "-c", "sleep 4; exit 3"]),
            (3, String::new(), Some(4))
        );
        assert_eq!(left(&["false"]).0, 1);
        assert_eq!(left(&["sleep", "infinity"]).2, None);
    }
}
