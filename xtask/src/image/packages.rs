//! The packages that are linked into the executables of an image, from cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::executable::choice;
use crate::workspace;

/// A package.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression of its licence.
    pub(crate) licence: Option<String>,
    pub(crate) repository: Option<String>,
    /// SHA-256 of the published package; none for those of this workspace.
    pub(crate) checksum: Option<String>,
    /// Folder of its sources.
    pub(crate) folder: PathBuf,
    /// Names and versions of the packages that it depends on.
    pub(crate) depends_on: BTreeSet<(String, String)>,
}

impl Package {
    /// Name and version.
    pub(crate) fn key(&self) -> (String, String) {
        (self.name.clone(), self.version.clone())
    }

    /// Whether it is one of this workspace.
    pub(crate) fn is_ours(&self) -> bool {
        self.checksum.is_none()
    }
}

/// The packages of the executables as an image has them, by name and version. `kruise` is one of them.
pub(super) fn of_image(target: &str) -> Result<Vec<Package>> {
    let linked = linked(target, &choice())?;
    let metadata = cargo(&[
        "metadata",
        "--locked",
        "--format-version=1",
        "--filter-platform",
        target,
    ])?;
    let lock = std::fs::read_to_string(workspace::root().join("Cargo.lock"))?;
    read(&serde_json::from_str(&metadata)?, &linked, &checksums(&lock))
}

/// Names and versions of what is linked with this choice of packages and features: not what only builds or
/// tests it.
fn linked(target: &str, choice: &[String]) -> Result<BTreeSet<(String, String)>> {
    let how = [
        "tree",
        "--locked",
        "--target",
        target,
        "--edges=normal,no-proc-macro",
        "--prefix=none",
        "--format={p}",
    ];
    let choice: Vec<&str> = choice.iter().map(String::as_str).collect();
    let tree = cargo(&[&how[..], &choice].concat())?;
    let lines = tree.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        let version = rest.split_whitespace().next()?;
        Some((name.to_owned(), version.to_owned()))
    });
    Ok(lines.collect())
}

fn read(
    metadata: &Value,
    linked: &BTreeSet<(String, String)>,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Vec<Package>> {
    let all = metadata["packages"].as_array().context("no packages")?;
    let text = |package: &Value, field: &str| package[field].as_str().map(str::to_owned);
    let mut keys = BTreeMap::new();
    for package in all {
        let key = (text(package, "name"), text(package, "version"));
        if let ((Some(name), Some(version)), Some(id)) = (key, text(package, "id")) {
            keys.insert(id, (name, version));
        }
    }
    let mut dependencies: BTreeMap<&str, BTreeSet<(String, String)>> = BTreeMap::new();
    let nodes = metadata.pointer("/resolve/nodes").and_then(Value::as_array);
    for node in nodes.into_iter().flatten() {
        let ids = node["deps"].as_array().into_iter().flatten();
        let ids = ids.filter_map(|dependency| dependency["pkg"].as_str());
        let found = ids
            .filter_map(|id| keys.get(id))
            .filter(|key| linked.contains(*key));
        if let Some(id) = node["id"].as_str() {
            dependencies.insert(id, found.cloned().collect());
        }
    }
    let mut packages = Vec::new();
    for package in all {
        let id = package["id"].as_str().unwrap_or_default();
        let Some(key) = keys.get(id).filter(|key| linked.contains(*key)) else {
            continue;
        };
        let manifest = PathBuf::from(text(package, "manifest_path").unwrap_or_default());
        packages.push(Package {
            name: key.0.clone(),
            version: key.1.clone(),
            // Older packages write a slash where SPDX has OR.
            licence: text(package, "license").map(|licence| licence.replace('/', " OR ")),
            repository: text(package, "repository"),
            checksum: checksums.get(key).cloned(),
            folder: manifest.parent().context("a manifest has a folder")?.into(),
            depends_on: dependencies.remove(id).unwrap_or_default(),
        });
    }
    if packages.len() != linked.len() {
        bail!(
            "cargo tree names {} packages, cargo metadata {}",
            linked.len(),
            packages.len()
        );
    }
    packages.sort_by_key(Package::key);
    Ok(packages)
}

/// The checksums of a lock file by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, name: &str| {
        let prefix = format!("{name} = \"");
        let mut lines = block.lines().filter_map(|line| line.strip_prefix(&prefix));
        lines
            .next()
            .and_then(|rest| rest.strip_suffix('"'))
            .map(str::to_owned)
    };
    let blocks = lock.split("[[package]]").skip(1);
    let found = blocks.filter_map(|block| {
        let key = (field(block, "name")?, field(block, "version")?);
        Some((key, field(block, "checksum")?))
    });
    found.collect()
}

fn cargo(arguments: &[&str]) -> Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(workspace::root())
        .output()?;
    if !output.status.success() {
        bail!(
            "cargo {}: {}",
            arguments.first().unwrap_or(&""),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::image::executable::{AGENT, Executable, MANAGER, TARGET};

    fn key(name: &str) -> (String, String) {
        (name.to_owned(), "1.0.0".to_owned())
    }

    /// The packages of this workspace in one executable of an image.
    fn own(executable: &Executable) -> BTreeSet<String> {
        let package = format!("--package={}", executable.package);
        let linked = linked(TARGET, &[package, "--no-default-features".to_owned()]).unwrap();
        linked.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn the_managers_executable_has_no_playground_and_no_agent_and_the_agents_no_manager() {
        let manager = own(&MANAGER);
        assert!(manager.contains("kruise-manager"), "{manager:?}");
        for absent in [
            "kruise-playground",
            "kruise-sim",
            "kruise-tour",
            "kruise-agent",
            "kruise-agent-core",
            "cri",
        ] {
            assert!(!manager.contains(absent), "{absent} is in the manager");
        }
        let agent = own(&AGENT);
        assert!(agent.contains("kruise-agent-core"), "{agent:?}");
        let of_controllers = |name: &&String| {
            let name = name.as_str();
            let is_plan = name.starts_with("kruise-plan-") && name != "kruise-plan-kit";
            is_plan
                || [
                    "kruise-manager",
                    "kruise-kinds",
                    "kruise-frame",
                    "kruise-admission",
                    "clap",
                ]
                .contains(&name)
        };
        let found: Vec<&String> = agent.iter().filter(of_controllers).collect();
        assert!(found.is_empty(), "in the agent: {found:?}");
    }

    #[test]
    fn only_what_is_linked_is_a_package_and_its_dependencies_are_linked_too() {
        let package = |name: &str| {
            json!({"name": name, "version": "1.0.0", "id": name, "license": "MIT/Apache-2.0",
                   "manifest_path": format!("/src/{name}/Cargo.toml")})
        };
        let metadata = json!({
            "packages": [package("b"), package("a"), package("build")],
            "resolve": {"nodes": [{"id": "a", "deps": [{"pkg": "b"}, {"pkg": "build"}]}]},
        });
        let lock = "[[package]]\nname = \"b\"\nversion = \"1.0.0\"\nchecksum = \"12\"\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n";
        let linked = BTreeSet::from([key("a"), key("b")]);
        let packages = read(&metadata, &linked, &checksums(lock)).unwrap();
        let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let [a, b] = &packages[..] else {
            panic!("{packages:?}")
        };
        assert_eq!(a.depends_on, BTreeSet::from([key("b")]));
        assert!(a.is_ours() && b.checksum.as_deref() == Some("12"));
        assert_eq!(b.licence.as_deref(), Some("MIT OR Apache-2.0"));
        assert_eq!(b.folder, PathBuf::from("/src/b"));
        let missing = BTreeSet::from([key("a"), key("c")]);
        assert!(read(&metadata, &missing, &checksums(lock)).is_err());
    }
}
