//! The texts of the licences of what the executables consist of. The same text is written once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::packages::Package;

/// Our own.
pub(super) const OURS: &str = include_str!("../../../LICENSE");

/// How deep in the folder of a package texts are looked for: some contain the sources of a C library with its own.
const DEPTH: usize = 3;

/// All texts, each with the packages that it is for. A package without a text is named with its licence.
pub(super) fn collect(packages: &[Package]) -> Result<String> {
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in packages.iter().filter(|package| !package.is_ours()) {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.licence.as_deref().unwrap_or("see its text");
        let mut files = Vec::new();
        find(&package.folder, DEPTH, &mut files)
            .with_context(|| format!("cannot read {}", package.folder.display()))?;
        if files.is_empty() {
            without.push(format!("{name} ({licence})"));
        }
        for file in files {
            let text = String::from_utf8_lossy(&std::fs::read(&file)?)
                .trim()
                .replace("\r\n", "\n");
            let of = users.entry(text).or_default();
            let line = format!("{name} ({licence})");
            if !of.contains(&line) {
                of.push(line);
            }
        }
    }
    Ok(written(&users, &without))
}

fn written(users: &BTreeMap<String, Vec<String>>, without: &[String]) -> String {
    let mut all: Vec<(&String, &Vec<String>)> = users.iter().collect();
    all.sort_by_key(|(_, packages)| *packages);
    let mut text = "The executables contain the following packages, each under its licence.\n".to_owned();
    for (licence, packages) in all {
        let rule = "-".repeat(80);
        // Writing to a text does not fail.
        let _ = writeln!(text, "\n{rule}\n{}\n\n{licence}", packages.join("\n"));
    }
    if !without.is_empty() {
        let list = without.join("\n");
        let _ = writeln!(
            text,
            "\nThese packages name a licence and have no file with its text:\n\n{list}"
        );
    }
    text
}

/// Files with the name of a licence or notice, in the order of their paths.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        let names = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
        if path.is_dir() {
            if depth > 0 && !name.starts_with('.') {
                find(&path, depth - 1, found)?;
            }
        } else if names.iter().any(|prefix| name.starts_with(prefix)) {
            found.push(path);
        }
    }
    Ok(())
}

/// The texts of the compiler's standard library, which is linked in with its C library, if they are installed.
pub(super) fn write_of_compiler(folder: &Path) -> Result<()> {
    let printed = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8(printed.stdout)?.trim());
    let documents = sysroot.join("share/doc/rust");
    for (from, to) in [
        ("COPYRIGHT-library.html", "rust-standard-library.html"),
        ("licenses/MIT.txt", "MIT.txt"),
        ("licenses/Apache-2.0.txt", "Apache-2.0.txt"),
    ] {
        let from = documents.join(from);
        if from.exists() {
            std::fs::copy(&from, folder.join(to))?;
        } else {
            eprintln!(
                "the compiler has no {}, so it is not beside the image",
                from.display()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_once_and_a_package_without_one_is_named() {
        let root = std::env::temp_dir().join(format!("kruise-licences-{}", std::process::id()));
        let package = |name: &str, file: Option<(&str, &str)>| {
            let folder = root.join(name);
            std::fs::create_dir_all(folder.join("c")).unwrap();
            if let Some((file, text)) = file {
                std::fs::write(folder.join(file), text).unwrap();
            }
            Package {
                name: name.into(),
                version: "1".into(),
                licence: Some("MIT".into()),
                repository: None,
                checksum: Some("12".into()),
                folder,
                depends_on: std::collections::BTreeSet::new(),
            }
        };
        let packages = [
            package("a", Some(("LICENSE-MIT", "the text\r\n"))),
            package("b", Some(("c/COPYING", "the text"))),
            package("c", None),
        ];
        let text = collect(&packages).unwrap();
        std::fs::remove_dir_all(root).unwrap();
        assert_eq!(text.matches("the text").count(), 1, "{text}");
        assert!(text.contains("a 1 (MIT)\nb 1 (MIT)\n\nthe text"), "{text}");
        assert!(text.ends_with("file with its text:\n\nc 1 (MIT)\n"), "{text}");
    }
}
