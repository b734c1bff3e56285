//! What is wrong with a command line, in the words that scripts around kubectl know.

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{resources::did_you_mean, root::NAME};

/// The lines for standard error.
pub fn refusal(error: &clap::Error, command: &Command, line: &[String]) -> String {
    let path = path(command, line);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let given = text(error, ContextKind::InvalidSubcommand);
            let names = command.get_subcommands().map(Command::get_name);
            let meant = did_you_mean(&given, names);
            format!(
                "Error: unknown command \"{given}\" for \"{NAME}\"{meant}\nRun '{NAME} --help' for usage."
            )
        }
        ErrorKind::UnknownArgument => {
            let given = text(error, ContextKind::InvalidArg);
            let meant = text(error, ContextKind::SuggestedArg);
            let meant = if meant.is_empty() {
                String::new()
            } else {
                format!("; did you mean {meant}?")
            };
            format!("Error: unknown flag: {given}{meant}\nSee '{path} --help' for usage.")
        }
        _ => {
            let rendered = error.render().to_string();
            let said = rendered.split("\n\n").next().unwrap_or_default();
            let words: Vec<&str> = said.split_whitespace().collect();
            format!("{}\nSee '{path} -h' for help and examples", words.join(" "))
        }
    }
}

/// The names of the commands of a line, from the executable on.
fn path(command: &Command, line: &[String]) -> String {
    let mut path = NAME.to_owned();
    let mut at = command;
    for word in line.iter().skip(1) {
        if let Some(below) = at.find_subcommand(word) {
            at = below;
            path = format!("{path} {word}");
        }
    }
    path
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.first().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    fn said(words: &[&str]) -> String {
        let line: Vec<String> = [NAME]
            .iter()
            .chain(words)
            .map(|word| (*word).to_owned())
            .collect();
        let error = root::command().try_get_matches_from(&line).unwrap_err();
        refusal(&error, &root::command(), &line)
    }

    #[test]
    fn unknown_commands_and_flags_are_answered_as_kubectl_does() {
        assert_eq!(
            said(&["explian"]),
            "Error: unknown command \"explian\" for \"kubectl-kruise\"; did you mean explain?\n\
             Run 'kubectl-kruise --help' for usage."
        );
        assert_eq!(
            said(&["restart", "clone/web", "--containr=a"]),
            "Error: unknown flag: --containr; did you mean --containers?\nSee 'kubectl-kruise restart --help' for usage."
        );
    }

    #[test]
    fn what_is_missing_or_cannot_be_read_is_said_in_one_line_with_the_way_to_the_help() {
        let missing = said(&["restart", "clone/web"]);
        assert!(
            missing.starts_with("error: ") && missing.contains("--containers <NAMES>"),
            "{missing}"
        );
        assert!(
            missing.ends_with("\nSee 'kubectl-kruise restart -h' for help and examples"),
            "{missing}"
        );
        assert_eq!(missing.lines().count(), 2, "{missing}");
    }
}
