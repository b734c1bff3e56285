//! Settings of the kernel that a kubelet and a bridge change for the whole machine: kept before, given back after.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

const SETTINGS: [&str; 7] = [
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
];

/// Notes the settings in a file, unless it is there already.
pub(super) fn keep(file: &Path) -> Result<()> {
    keep_from(Path::new("/proc/sys"), file)
}

/// Gives the noted settings back and removes the file; does nothing without one.
pub(super) fn give_back(file: &Path) -> Result<()> {
    give_back_to(Path::new("/proc/sys"), file)
}

fn keep_from(root: &Path, file: &Path) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    let mut found = serde_json::Map::new();
    for name in SETTINGS {
        // A kernel need not have them all.
        if let Ok(value) = std::fs::read_to_string(root.join(name)) {
            found.insert(name.into(), Value::from(value.trim()));
        }
    }
    std::fs::write(file, Value::Object(found).to_string()).context("cannot note the kernel's settings")
}

fn give_back_to(root: &Path, file: &Path) -> Result<()> {
    let Ok(text) = std::fs::read(file) else {
        return Ok(());
    };
    let noted: serde_json::Map<String, Value> = serde_json::from_slice(&text)?;
    for (name, value) in &noted {
        let path = root.join(name);
        let now = std::fs::read_to_string(&path).unwrap_or_default();
        let value = value.as_str().unwrap_or_default();
        if now.trim() != value {
            std::fs::write(&path, value).with_context(|| format!("cannot set {name} back"))?;
        }
    }
    std::fs::remove_file(file).context("cannot remove the note of the kernel's settings")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_as_they_were_before_the_first_note() {
        let root = std::env::temp_dir().join(format!("kruise-kernel-{}", std::process::id()));
        let (panic, file) = (root.join("kernel/panic"), root.join("note"));
        std::fs::create_dir_all(root.join("kernel")).unwrap();
        std::fs::write(&panic, "0\n").unwrap();
        keep_from(&root, &file).unwrap();
        std::fs::write(&panic, "10\n").unwrap();
        keep_from(&root, &file).unwrap();
        give_back_to(&root, &file).unwrap();
        assert_eq!(std::fs::read_to_string(&panic).unwrap(), "0");
        assert!(!file.exists());
        give_back_to(&root, &file).unwrap();
        std::fs::remove_dir_all(root).unwrap();
    }
}
