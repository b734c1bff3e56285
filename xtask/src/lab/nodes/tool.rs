//! Other people's programs: where they are, and what they print when they fail.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Folders of the administrator's programs, which are not in everybody's `PATH`.
const MORE_FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// The path of a program, if it is installed.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(MORE_FOLDERS.split(':'));
    folders
        .filter(|folder| !folder.is_empty())
        .map(|folder| PathBuf::from(folder).join(program))
        .find(|path| path.is_file())
}

/// Runs a program out of reach of an interrupt; returns what it printed, or fails with its own error text.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    run_with_input(program, arguments, b"")
}

/// As [`run`], with these bytes on standard input. It must print only after it has read them all.
pub(super) fn run_with_input(program: &str, arguments: &[&str], input: &[u8]) -> Result<String> {
    let path = find(program).with_context(|| format!("{program} is not installed"))?;
    let mut child = Command::new(path)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that ends before it has read everything reports why by its exit code.
        let _closed_early = pipe.write_all(input);
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!(
            "{program} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A template with its `{{names}}` replaced; fails if one of them has no value.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> Result<String> {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{{{name}}}}}"), value);
    }
    match text.split_once("{{") {
        Some((_, rest)) => bail!("no value for {}", rest.split("}}").next().unwrap_or_default()),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_quoted_and_a_missing_one_is_named() {
        assert_eq!(run("echo", &["a"]).unwrap(), "a\n");
        assert_eq!(run_with_input("cat", &[], b"b").unwrap(), "b");
        let error = run("cat", &["/no/such/file"]).unwrap_err().to_string();
        assert!(
            error.contains("cat /no/such/file") && error.contains("No such"),
            "{error}"
        );
        let error = run("no-such-program", &[]).unwrap_err().to_string();
        assert_eq!(error, "no-such-program is not installed");
    }

    #[test]
    fn a_template_without_a_value_is_an_error() {
        assert_eq!(fill("a {{b}} {{b}}", &[("b", "c")]).unwrap(), "a c c");
        let error = fill("a {{b}} {{d}}", &[("b", "c")]).unwrap_err().to_string();
        assert_eq!(error, "no value for d");
    }
}
