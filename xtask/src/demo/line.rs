//! A command line: printed as a reader can repeat it, and run as printed.

use std::fmt;

/// What the tour runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Kubectl,
    Kruise,
}

/// One command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) program: Program,
    pub(crate) arguments: Vec<String>,
}

impl Line {
    pub(crate) fn kubectl<const N: usize>(arguments: [&str; N]) -> Self {
        Self {
            program: Program::Kubectl,
            arguments: arguments.map(String::from).to_vec(),
        }
    }

    pub(crate) fn kruise<const N: usize>(arguments: [&str; N]) -> Self {
        Self {
            program: Program::Kruise,
            arguments: arguments.map(String::from).to_vec(),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.program {
            Program::Kubectl => "kubectl",
            Program::Kruise => "kruise",
        })?;
        self.arguments
            .iter()
            .try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

/// As a shell reads it back: in single quotes unless every character is plain.
fn quoted(argument: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !argument.is_empty() && argument.bytes().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_is_printed() {
        let arguments = [
            "patch",
            "clone",
            r#"{"a":[1,"b c"]}"#,
            "",
            "it's",
            "$HOME",
            "--type=json",
            "a\\b",
        ];
        let line = Line::kubectl(arguments);
        let printed = line.to_string();
        assert!(
            printed.starts_with(r#"kubectl patch clone '{"a":[1,"b c"]}' "#),
            "{printed}"
        );
        let script = printed.replacen("kubectl", r"printf '%s\n'", 1);
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(output.stdout)
                .unwrap()
                .lines()
                .collect::<Vec<_>>(),
            arguments
        );
    }
}
