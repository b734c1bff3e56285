//! The control groups of a node: made, emptied by force, removed. Both hierarchies, the old one with a folder for each
//! controller and the unified one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kruise_e2e::process::{self, Signal};
use kruise_e2e::wait;

const ROOT: &str = "/sys/fs/cgroup";
/// What a kubelet insists on.
const NEEDED: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// Makes the group of that name, with the controllers a kubelet needs.
pub(super) fn create(name: &str) -> Result<()> {
    if is_unified() {
        return create_unified(name);
    }
    for hierarchy in hierarchies()? {
        let group = hierarchy.join(name);
        std::fs::create_dir_all(&group).with_context(|| format!("cannot make {}", group.display()))?;
        // A new group of this controller may use nothing, so that no process can enter it.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(all) = std::fs::read(hierarchy.join(file)) {
                std::fs::write(group.join(file), all)?;
            }
        }
    }
    let missing: Vec<&str> = NEEDED
        .into_iter()
        .filter(|controller| !Path::new(ROOT).join(controller).join(name).exists())
        .collect();
    if !missing.is_empty() {
        bail!("control groups lack {}", missing.join(", "));
    }
    Ok(())
}

fn create_unified(name: &str) -> Result<()> {
    let root = Path::new(ROOT);
    for controller in NEEDED.into_iter().chain(["hugetlb", "io"]) {
        // What could not be enabled is missing below.
        let _refused = std::fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
    }
    let group = root.join(name);
    std::fs::create_dir_all(&group).with_context(|| format!("cannot make {}", group.display()))?;
    let have = std::fs::read_to_string(group.join("cgroup.controllers"))?;
    let missing: Vec<&str> = NEEDED
        .into_iter()
        .filter(|controller| !have.split_whitespace().any(|word| word == *controller))
        .collect();
    if !missing.is_empty() {
        bail!("control groups cannot be given {}", missing.join(", "));
    }
    Ok(())
}

/// Kills every process in the group and below it, until there is none.
pub(super) fn kill(name: &str) -> Result<()> {
    wait::until_true("the containers are gone", Duration::from_secs(30), || {
        let mut pids = Vec::new();
        for hierarchy in hierarchies()? {
            collect(&hierarchy.join(name), &mut pids);
        }
        pids.sort_unstable();
        pids.dedup();
        for pid in &pids {
            // Fails if it ended meanwhile, which is what is wanted.
            let _gone = process::signal(*pid, Signal::Kill);
        }
        Ok(pids.is_empty())
    })
}

/// Removes the group and what is below it.
pub(super) fn remove(name: &str) -> Result<()> {
    wait::until_true("the control groups are gone", Duration::from_secs(20), || {
        for hierarchy in hierarchies()? {
            remove_tree(&hierarchy.join(name))?;
        }
        Ok(true)
    })
}

fn is_unified() -> bool {
    Path::new(ROOT).join("cgroup.controllers").exists()
}

/// Folders that hold a tree of groups each.
fn hierarchies() -> Result<Vec<PathBuf>> {
    if is_unified() {
        return Ok(vec![ROOT.into()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(ROOT).context("no control groups")? {
        let entry = entry?;
        // Some controllers are links to a folder that they share.
        if entry.file_type()?.is_dir() && entry.path().join("cgroup.procs").exists() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Process ids of a group and those below it; a group that is gone has none.
fn collect(group: &Path, pids: &mut Vec<u32>) {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
    for below in folders(group) {
        collect(&below, pids);
    }
}

/// Innermost first; the files of a group go with it.
fn remove_tree(group: &Path) -> Result<()> {
    for below in folders(group) {
        remove_tree(&below)?;
    }
    match std::fs::remove_dir(group) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", group.display()))
        }
        _ => Ok(()),
    }
}

fn folders(group: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_groups_below_count_and_the_innermost_group_goes_first() {
        let root = std::env::temp_dir().join(format!("kruise-cgroups-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("cgroup.procs"), "1\n").unwrap();
        std::fs::write(root.join("a/b/cgroup.procs"), "7\n9\n").unwrap();
        let mut pids = Vec::new();
        collect(&root, &mut pids);
        assert_eq!(pids, [1, 7, 9]);
        collect(&root.join("none"), &mut pids);
        assert_eq!(pids.len(), 3);

        // Ordinary folders keep their files: only here they must be removed first.
        std::fs::remove_file(root.join("cgroup.procs")).unwrap();
        std::fs::remove_file(root.join("a/b/cgroup.procs")).unwrap();
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        remove_tree(&root).unwrap();
    }
}
