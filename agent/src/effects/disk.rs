//! How much room there is for images.
//!
//! The folder with the images is one of the node's. If the container of the agent does not see it, its own root file system
//! mostly lies there, too: runtimes keep the writable layers of containers beside their images. The table of mounts says where.

use std::path::{Path, PathBuf};

use kruise_agent_core::Filesystem;
use rustix::fs::statvfs;

const MOUNTS: &str = "/proc/self/mountinfo";
const ROOT: &str = "/";

/// Measures the file system with this folder.
///
/// # Errors
/// It is not visible here.
pub(super) fn measure(folder: &Path) -> Result<Filesystem, String> {
    if matches!(folder.try_exists(), Ok(true)) {
        return read(folder);
    }
    let mounts = std::fs::read_to_string(MOUNTS).unwrap_or_default();
    match layer(&mounts) {
        Some(layer) if layer.starts_with(folder) => read(Path::new(ROOT)),
        _ => Err(format!(
            "{} is not visible in the agent's container",
            folder.display()
        )),
    }
}

fn read(path: &Path) -> Result<Filesystem, String> {
    let stat = statvfs(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Filesystem {
        free: stat.f_bavail.saturating_mul(stat.f_frsize),
        size: stat.f_blocks.saturating_mul(stat.f_frsize),
    })
}

/// The folder of the node that holds the writable layer of this container's root; see proc_pid_mountinfo(5).
fn layer(mounts: &str) -> Option<PathBuf> {
    let root = mounts.lines().rev().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        (before.split(' ').nth(4) == Some(ROOT)).then_some(after)
    })?;
    let mut fields = root.splitn(3, ' ');
    if fields.next() != Some("overlay") {
        return None;
    }
    let mut options = fields.nth(1)?.split(',');
    options
        .find_map(|option| option.strip_prefix("upperdir="))
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTAINERD: &str = "\
1 0 0:5 / /proc rw,nosuid - proc proc rw
2 0 0:63 / / rw,relatime master:7 - overlay overlay rw,lowerdir=/l/1/fs:/l/2/fs,upperdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/9/fs,workdir=/w
3 2 0:64 / /etc/hosts rw - ext4 /dev/vda rw
";

    #[test]
    fn the_writable_layer_of_a_container_is_in_the_table_of_mounts() {
        let folder = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs";
        let layer = layer(CONTAINERD).unwrap();
        assert!(layer.starts_with(folder), "{layer:?}");
    }

    #[test]
    fn another_root_has_no_such_layer() {
        for mounts in [
            "",
            "1 0 8:1 / / rw - ext4 /dev/vda rw",
            "1 0 8:1 / / rw",
            "nonsense",
        ] {
            assert_eq!(layer(mounts), None, "{mounts}");
        }
    }

    #[test]
    fn a_folder_that_is_visible_is_measured_and_another_one_is_named() {
        let disk = measure(&std::env::temp_dir()).unwrap();
        assert!(disk.size > 0 && disk.free <= disk.size, "{disk:?}");
        let error = measure(Path::new("/no/such/folder")).unwrap_err();
        assert_eq!(error, "/no/such/folder is not visible in the agent's container");
    }
}
