//! `kubectl-kruise completion`: command lines are completed by the shell, and by kubectl.
//!
//! kubectl asks the executable `kubectl_complete-kruise` with the words so far. It is this executable under
//! that name.

use std::fmt::Write as _;

use clap::{Args, Command, FromArgMatches as _, ValueEnum};
use clap_complete::{Shell, generate};

use crate::{
    cluster::Cluster,
    connection::Connection,
    resources::{Resource, all, named},
    root::{self, NAME},
    run,
    target::Selection,
};

/// The name under which kubectl asks for completions.
pub const FOR_KUBECTL: &str = "kubectl_complete-kruise";

/// Examples of its command line.
pub const EXAMPLES: &[(&str, &str)] = &[
    ("In this bash", "source <(kubectl kruise completion bash)"),
    (
        "In every fish",
        "kubectl kruise completion fish > ~/.config/fish/completions/kubectl-kruise.fish",
    ),
];

/// What kubectl does after the candidates: nothing, above all no names of files.
const NO_FILES: &str = ":4\n";

/// For which shell.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The shell.
    shell: Shells,
}

/// The shells that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shells {
    Bash,
    Zsh,
    Fish,
}

/// The script for a shell.
pub fn script(options: &Options, command: &mut Command) -> String {
    let shell = match options.shell {
        Shells::Bash => Shell::Bash,
        Shells::Zsh => Shell::Zsh,
        Shells::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, command, NAME, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// What the last word of a line may become, a line each, and what kubectl does then.
///
/// # Errors
/// Never: what cannot be asked of the cluster is not offered.
pub fn complete(line: &[String]) -> anyhow::Result<String> {
    let [before @ .., last] = line.get(1..).unwrap_or_default() else {
        return Ok(NO_FILES.to_owned());
    };
    let mut text = String::new();
    for candidate in candidates(before, last, &names) {
        let _infallible = writeln!(text, "{candidate}");
    }
    Ok(text + NO_FILES)
}

/// Names of the objects of a resource.
type Names<'n> = dyn Fn(&Resource, &[String]) -> Vec<String> + 'n;

/// Words that begin with the last one: commands, flags, types, names of objects.
fn candidates(before: &[String], last: &str, names: &Names<'_>) -> Vec<String> {
    let root = root::command();
    let command = before.iter().find_map(|word| root.find_subcommand(word));
    let mut found: Vec<String> = match command {
        _ if last.starts_with('-') => flags(command.unwrap_or(&root), &root),
        None => root
            .get_subcommands()
            .map(|one| one.get_name().to_owned())
            .collect(),
        Some(command) if !takes_targets(command) => Vec::new(),
        Some(_) => targets(before, last, names),
    };
    found.retain(|candidate| candidate.starts_with(last));
    found.sort();
    found.dedup();
    found
}

fn flags(command: &Command, root: &Command) -> Vec<String> {
    let all = command.get_arguments().chain(root.get_arguments());
    all.filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .collect()
}

fn takes_targets(command: &Command) -> bool {
    command
        .get_arguments()
        .any(|argument| argument.get_id() == "targets")
}

fn targets(before: &[String], last: &str, names: &Names<'_>) -> Vec<String> {
    if let Some((kind, _)) = last.split_once('/') {
        let of = named(kind).into_iter().next();
        let names = of.map(|resource| names(&resource, before)).unwrap_or_default();
        return names.iter().map(|name| format!("{kind}/{name}")).collect();
    }
    // After `explain clone ` names follow.
    let kind = before.iter().skip(1).find(|word| !word.starts_with('-'));
    if let Some(resource) = kind.and_then(|kind| named(kind).into_iter().next()) {
        return names(&resource, before);
    }
    all()
        .map(|resource| format!("{}/", resource.short_name()))
        .collect()
}

/// The names in the cluster that the line chooses.
fn names(resource: &Resource, before: &[String]) -> Vec<String> {
    // The line is not complete: what is wrong with it or missing does not matter.
    let line = std::iter::once(NAME).chain(before.iter().map(String::as_str));
    let line = root::command().ignore_errors(true).try_get_matches_from(line);
    let connection = line.and_then(|line| Connection::from_arg_matches(&line));
    let connection = connection.unwrap_or_default();
    let found = run::to_end(async {
        let client = connection.connect("complete").await?;
        let cluster = Cluster::discover(&client).await?;
        let namespace = connection.namespace(&client);
        cluster.names(resource, namespace, &Selection::default()).await
    });
    let found = found.unwrap_or_default();
    found.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (last, before) = words.split_last().unwrap();
        let names = |resource: &Resource, _: &[String]| {
            ["web", "api"]
                .map(|name| format!("{name}-{}", resource.short_name()))
                .to_vec()
        };
        candidates(before, last, &names)
    }

    #[test]
    fn commands_flags_types_and_names_are_completed() {
        assert_eq!(completed(&["ex"]), ["explain"]);
        assert_eq!(completed(&["restart", "--cont"]), ["--containers", "--context"]);
        assert_eq!(completed(&["explain", "clo"]), ["clone/"]);
        assert_eq!(completed(&["explain", "clone/w"]), ["clone/web-clone"]);
        assert_eq!(completed(&["explain", "asts", ""]), ["api-asts", "web-asts"]);
        assert!(completed(&["version", ""]).is_empty());
    }

    #[test]
    fn each_shell_has_a_script_that_knows_every_command() {
        for shell in [Shells::Bash, Shells::Zsh, Shells::Fish] {
            let script = script(&Options { shell }, &mut root::command());
            for command in root::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell:?}");
            }
        }
    }
}
