//! The page of the reference about all commands, from the command line itself.

use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::root;

/// The page in Markdown.
pub fn page() -> String {
    let mut root = root::command();
    root.build();
    let mut page = "# kubectl-kruise\n\n[What they have in common](../kubectl-kruise.md): clusters, targets, completion, errors.\n".to_owned();
    for command in root.get_subcommands() {
        section(&mut page, command);
    }
    page.push_str("\n## Flags of all commands\n\n");
    rows(
        &mut page,
        root.get_arguments().filter(|flag| flag.is_global_set()),
    );
    page
}

fn section(page: &mut String, command: &Command) {
    let about = command.get_about().map(ToString::to_string);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let _infallible = write!(
        page,
        "\n## {}\n\n{}\n\n```console\n$ {usage}\n```\n\n",
        command.get_name(),
        about.unwrap_or_default()
    );
    let is_own = |flag: &&Arg| !flag.is_global_set() && flag.get_id() != "help";
    rows(page, command.get_arguments().filter(is_own));
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let examples: Vec<&str> = examples
            .lines()
            .skip(1)
            .map(|line| line.strip_prefix("  ").unwrap_or(line))
            .collect();
        let _infallible = write!(page, "\n```sh\n{}\n```\n", examples.join("\n"));
    }
}

fn rows<'a>(page: &mut String, flags: impl Iterator<Item = &'a Arg>) {
    page.push_str("| Flag | Default | What |\n|---|---|---|\n");
    for flag in flags {
        let default: Vec<String> = flag
            .get_default_values()
            .iter()
            .filter(|_| flag.get_action().takes_values())
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.replace('|', "\\|");
        let _infallible = writeln!(page, "| {} | {} | {help} |", name(flag), default.join(", "));
    }
}

/// `-l`, `--selector SELECTOR`; of what has no flag the name of its value.
fn name(flag: &Arg) -> String {
    let values: Vec<String> = flag
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    let value = if flag.get_action().takes_values() {
        values.join(" ")
    } else {
        String::new()
    };
    let short = flag.get_short().map(|short| format!("`-{short}`, "));
    match flag.get_long() {
        Some(long) if value.is_empty() => format!("{}`--{long}`", short.unwrap_or_default()),
        Some(long) => format!("{}`--{long} {value}`", short.unwrap_or_default()),
        None => format!("`{value}`"),
    }
}
