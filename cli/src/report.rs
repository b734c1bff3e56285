//! What a command has to say, and how it ends.

use std::process::ExitCode;

use kruise_program::output;

use crate::failure;

/// The result of a command that may be about several objects.
#[derive(Debug, Default)]
pub struct Report {
    /// What is printed.
    pub text: String,
    /// What failed. The other objects were seen to.
    pub failures: Vec<anyhow::Error>,
}

impl From<String> for Report {
    fn from(text: String) -> Self {
        Self {
            text,
            failures: Vec::new(),
        }
    }
}

impl Report {
    /// Adds what became of one object. Texts are separated by empty lines.
    pub fn add(&mut self, one: anyhow::Result<String>) {
        match one {
            Ok(text) => {
                if !self.text.is_empty() && !text.is_empty() {
                    self.text.push('\n');
                }
                self.text.push_str(&text);
            }
            Err(error) => self.failures.push(error),
        }
    }
}

/// Prints the result, and a line for each failure. The exit code is 1 if anything failed.
pub fn finish(result: anyhow::Result<impl Into<Report>>) -> ExitCode {
    let Report { text, mut failures } = match result {
        Ok(report) => report.into(),
        Err(error) => Report {
            text: String::new(),
            failures: vec![error],
        },
    };
    if let Err(error) = output::print(&text) {
        failures.push(error.into());
    }
    for error in &failures {
        output::report(format_args!("error: {}", failure::line(error)));
    }
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn one_object_that_fails_does_not_hide_the_others() {
        let mut report = Report::default();
        report.add(Ok("one\n".into()));
        report.add(Err(anyhow!("no")));
        report.add(Ok("two\n".into()));
        assert_eq!(report.text, "one\n\ntwo\n");
        assert_eq!(report.failures.len(), 1);
    }
}
