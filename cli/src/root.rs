//! The command line of `kubectl-kruise`: its commands in groups, their examples, and how it ends.

use std::{fmt::Write as _, process::ExitCode};

use clap::{Args, Command as Clap, CommandFactory, FromArgMatches as _, Parser, Subcommand};
use kruise_program::output;
use kruise_swap::preflight;

use crate::{
    bundle, completion,
    connection::Connection,
    explain, inject,
    report::{Report, finish},
    restart, run, usage,
    version::{self, KUBECTL_KRUISE},
};

/// Name of the executable.
pub const NAME: &str = KUBECTL_KRUISE.name;

/// See and steer workloads of Kruise, with your own rights.
#[derive(Parser)]
#[command(name = NAME, version, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Subcommand)]
enum Command {
    /// Say what would be done with objects, what would not yet, and which limit decides it.
    #[command(after_help = examples(explain::EXAMPLES))]
    Explain(explain::Options),
    /// Print pods with the sidecars that they would get, and why they get these and not others.
    #[command(after_help = examples(inject::EXAMPLES))]
    Inject(inject::Options),
    /// Restart containers of all pods of a workload, within its maxUnavailable. The pods stay.
    #[command(after_help = examples(restart::EXAMPLES))]
    Restart(restart::CommandLine),
    /// Collect facts about an installation and its objects in an archive for those who help with it, without
    /// secrets.
    #[command(after_help = examples(bundle::EXAMPLES))]
    Bundle(bundle::Options),
    /// Check a cluster of OpenKruise: what would happen if Kruise in Rust took over. Changes nothing.
    #[command(after_help = examples(PREFLIGHT))]
    Preflight(preflight::Options),
    /// Print a script that completes command lines in bash, zsh or fish.
    #[command(after_help = examples(completion::EXAMPLES))]
    Completion(completion::Options),
    /// Print the version, and what this executable was built from.
    Version(version::Options),
}

/// The commands in the order of the help.
const GROUPS: [(&str, &[&str]); 4] = [
    ("See", &["explain", "inject"]),
    ("Act", &["restart"]),
    ("Check and report", &["bundle", "preflight"]),
    ("Other", &["completion", "version"]),
];

/// Namespace of OpenKruise, unless a flag names another.
const MANAGER_NAMESPACE: &str = "kruise-system";
/// Examples of the command line of `preflight`.
const PREFLIGHT: &[(&str, &str)] = &[("For programs", "kubectl kruise preflight -o json")];

/// A command of people with its connection, as another executable has it.
#[derive(Args, Debug)]
pub struct Connected<O: Args> {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    options: O,
}

impl<O: Args> Connected<O> {
    /// Runs the command.
    pub fn run<R>(&self, command: impl FnOnce(&Connection, &O) -> R) -> R {
        command(&self.connection, &self.options)
    }
}

/// Runs a command line, whose first word is the name of the executable.
pub fn main(line: Vec<String>) -> ExitCode {
    if let Some(name) = line.first()
        && name.rsplit('/').next() == Some(completion::FOR_KUBECTL)
    {
        return finish(completion::complete(&line));
    }
    if line.len() < 2 {
        return finish(Ok(command().render_help().to_string()));
    }
    let parsed = command().try_get_matches_from(&line);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return refused(&error, &line),
    };
    let connection = &cli.connection;
    match cli.command {
        Command::Explain(options) => finish(explain::run(connection, &options)),
        Command::Inject(options) => finish(inject::run(connection, &options)),
        Command::Restart(options) => finish(restart::run(connection, &options)),
        Command::Bundle(options) => finish(bundle::run(connection, &options)),
        Command::Preflight(options) => preflight(connection, &options),
        Command::Completion(options) => finish(Ok(completion::script(&options, &mut command()))),
        Command::Version(options) => finish(version::render(&options, KUBECTL_KRUISE)),
    }
}

/// The exit code says what was found, and 2 that something could not be found out.
fn preflight(connection: &Connection, options: &preflight::Options) -> ExitCode {
    let namespace = connection.given_namespace().unwrap_or(MANAGER_NAMESPACE);
    let reached = run::to_end(async { connection.connect("preflight").await });
    let source = connection.source();
    match reached.and_then(|_| preflight::run(&source, namespace, options)) {
        Ok(found) => match finish(Ok(found.text)) {
            ExitCode::SUCCESS => found.code.into(),
            failed => failed,
        },
        Err(error) => {
            finish(Err::<Report, _>(error));
            ExitCode::from(2)
        }
    }
}

/// The command line as clap knows it.
pub fn command() -> Clap {
    let command = Cli::command();
    let help = help(&command);
    command.override_help(help)
}

/// Prints help, or what is wrong with a command line.
fn refused(error: &clap::Error, line: &[String]) -> ExitCode {
    if error.use_stderr() {
        output::report(usage::refusal(error, &command(), line));
        return ExitCode::FAILURE;
    }
    finish(Ok(error.render().to_string()))
}

fn help(command: &Clap) -> String {
    let about = command.get_about().map(ToString::to_string);
    let mut text = format!("{}\n", about.unwrap_or_default());
    for (group, names) in GROUPS {
        let _infallible = writeln!(text, "\n{group}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Clap::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _infallible = writeln!(text, "  {name:<12}{}", about.trim_end_matches('.'));
        }
    }
    text + "\nExamples:\n  kubectl kruise explain clone/web\n  kubectl kruise restart clone/web -c main\n\n\
            Usage:\n  kubectl-kruise COMMAND [flags]\n\n\
            Use \"kubectl-kruise COMMAND --help\" for the flags and examples of a command.\n"
}

/// The section of the help with examples.
fn examples(lines: &[(&str, &str)]) -> String {
    let mut text = "Examples:".to_owned();
    for (about, line) in lines {
        let _infallible = write!(text, "\n  # {about}\n  {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_clap_finds_nothing_wrong() {
        command().debug_assert();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let command = command();
        let mut all: Vec<&str> = command.get_subcommands().map(Clap::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn flags_of_the_connection_may_stand_before_and_after_the_command() {
        for line in [
            ["kubectl-kruise", "-n", "shop", "explain", "clone/web"],
            ["kubectl-kruise", "explain", "clone/web", "-n", "shop"],
        ] {
            let matches = command().try_get_matches_from(line).unwrap();
            let cli = Cli::from_arg_matches(&matches).unwrap();
            assert_eq!(cli.connection.given_namespace(), Some("shop"));
        }
    }

    #[test]
    fn every_example_is_a_command_line() {
        for lines in [
            explain::EXAMPLES,
            inject::EXAMPLES,
            restart::EXAMPLES,
            bundle::EXAMPLES,
            completion::EXAMPLES,
        ] {
            for (_, line) in lines {
                let Some(rest) = line.split("kubectl kruise ").nth(1) else {
                    panic!("{line}");
                };
                let words = rest
                    .split_whitespace()
                    .take_while(|word| !matches!(*word, "|" | ">"));
                let words = std::iter::once(NAME).chain(words.map(|word| word.trim_end_matches(')')));
                command().try_get_matches_from(words).unwrap();
            }
        }
    }
}
