//! The file of `--audit-log`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use kruise_sim::http::AuditLog;
use serde_json::Value;

/// Longest first line of an audit log that is looked at, in bytes.
const FIRST_LINE: u64 = 1 << 16;

/// Opens a file to append to, which only this user can read if it is new. It must be empty or an audit log: any other
/// file stays as it is.
pub(super) fn open(path: &Path) -> anyhow::Result<AuditLog> {
    let file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("--audit-log={} cannot be written", path.display()))?;
    // reading from anything else, such as a terminal, may wait for ever
    if file.metadata()?.is_file() && !is_audit_log(&file)? {
        bail!(
            "--audit-log={}: the file is not an audit log and stays as it is; name another one",
            path.display()
        );
    }
    Ok(AuditLog::new(file))
}

fn is_audit_log(file: &File) -> std::io::Result<bool> {
    let mut first = Vec::new();
    BufReader::new(file.take(FIRST_LINE)).read_until(b'\n', &mut first)?;
    let event: Value = serde_json::from_slice(&first).unwrap_or_default();
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    Ok(first.is_empty() || (text("kind") == "Event" && text("apiVersion").starts_with("audit.k8s.io/")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::open;

    #[test]
    fn an_audit_log_goes_on_and_nothing_else_is_touched() {
        let path = std::env::temp_dir().join(format!("kruise-audit-{}", std::process::id()));
        open(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let event = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1"}"#;
        for (text, is_taken) in [
            ("", true),
            (&format!("{event}\n"), true),
            (&format!("{event}\nmore\n"), true),
            ("my notes\n", false),
            ("\n", false),
            (r#"{"kind":"Event","apiVersion":"v1"}"#, false),
        ] {
            std::fs::write(&path, text).unwrap();
            let opened = open(&path);
            assert_eq!(opened.is_ok(), is_taken, "{text:?}: {opened:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::remove_file(path).unwrap();
    }
}
