//! How much room there is for images.
//!
//! The folder with the images is one of the node's. If the container of the agent does not see it, its own root
//! file system mostly lies there, too: runtimes keep the writable layers of containers beside their images. The
//! runtime says so by the same folder for both. Where it does not report the folder of containers, the table of
//! mounts says in which folder the layer is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kruise_agent_core::{Failure, Filesystem};
use rustix::fs::statvfs;
use tokio::time::timeout;

use super::failure::failure;

const MOUNTS: &str = "/proc/self/mountinfo";
const ROOT: &str = "/";
/// Longest time in which a disk says how large and how full it is.
const MEASUREMENT: Duration = Duration::from_secs(10);

/// What the folder with the images of CRI-O ends with. What comes before is the driver, and the name of the folder
/// with the layers.
const IMAGES: &str = "-images";

/// The folders that a runtime names.
#[derive(Clone, Debug)]
struct Folders {
    /// That with the images.
    images: PathBuf,
    /// That with the writable layers of containers, if the runtime says where it is.
    containers: Option<PathBuf>,
}

/// The size of the file system with the images, which a runtime does not tell: only where that is.
pub(crate) async fn room(client: &cri::Client) -> Result<Filesystem, Failure> {
    let all = client.filesystems().await;
    let all = all.map_err(|error| failure(&error))?;
    let folder = |all: Vec<cri::Filesystem>| {
        let folder = all.into_iter().next().map(|one| one.mountpoint);
        folder.filter(|folder| folder.is_absolute())
    };
    let images = folder(all.images)
        .ok_or_else(|| Failure::Failed("the runtime does not say where its images are".into()))?;
    let containers = folder(all.containers);
    // A disk that does not answer must not stop everything else.
    let measured = tokio::task::spawn_blocking(move || measure(&Folders { images, containers }));
    let measured = match timeout(MEASUREMENT, measured).await {
        Ok(measured) => measured.unwrap_or_else(|error| Err(error.to_string())),
        Err(_) => Err("the disk does not answer".to_owned()),
    };
    measured.map_err(|problem| Failure::Failed(problem.into()))
}

/// Measures the file system with the images.
///
/// # Errors
/// It is not visible here, in plain words.
fn measure(folders: &Folders) -> Result<Filesystem, String> {
    let images = &folders.images;
    if matches!(images.try_exists(), Ok(true)) {
        return read(images);
    }
    let mounts = std::fs::read_to_string(MOUNTS).unwrap_or_default();
    match layer(&mounts) {
        Some(layer) if folders.are_around(&layer) => read(Path::new(ROOT)),
        _ => Err(format!(
            "{} is not visible in the agent's container",
            images.display()
        )),
    }
}

impl Folders {
    /// Is the file system with this writable layer the one with the images?
    fn are_around(&self, layer: &Path) -> bool {
        match &self.containers {
            Some(containers) => *containers == self.images,
            None => layer.starts_with(&self.images) || layer.starts_with(layers(&self.images)),
        }
    }
}

/// The folder with the layers of images. It is the folder of the images, except for runtimes that keep only a list
/// of images there.
fn layers(images: &Path) -> PathBuf {
    let name = images.file_name().and_then(OsStr::to_str);
    match name.and_then(|name| name.strip_suffix(IMAGES)) {
        Some(driver) if !driver.is_empty() => images.with_file_name(driver),
        _ => images.to_owned(),
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

    const CRIO: &str = "\
1 0 0:90 / / ro,relatime - overlay overlay rw,lowerdir=/l/1:/l/2,upperdir=/var/lib/containers/storage/overlay/9f/diff,workdir=/w,metacopy=on
2 1 0:5 / /proc rw,nosuid - proc proc rw
";

    fn folders(images: &str, containers: Option<&str>) -> Folders {
        Folders {
            images: images.into(),
            containers: containers.map(PathBuf::from),
        }
    }

    #[test]
    fn a_layer_beside_the_images_is_known_by_what_the_runtime_says_of_containers() {
        let images = "/var/lib/containers/storage/overlay-images";
        let layer = layer(CRIO).unwrap();
        for (images, containers, is_beside) in [
            // CRI-O since 1.29, and an older one.
            (images, Some(images), true),
            (images, None, true),
            // CRI-O with a store for images on another disk, and an older one.
            (
                "/imagestore/overlay-images",
                Some("/var/lib/containers/storage/overlay-containers"),
                false,
            ),
            ("/imagestore/overlay-images", None, false),
            // Names that only look alike.
            ("/var/lib/containers/storage/vfs-images", None, false),
            ("/var/lib/containers/storage/-images", None, false),
            ("/var/lib/containers/storage/over", None, false),
        ] {
            let folders = folders(images, containers);
            assert_eq!(folders.are_around(&layer), is_beside, "{folders:?}");
        }
    }

    #[test]
    fn the_writable_layer_of_a_container_is_in_the_table_of_mounts() {
        let folder = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs";
        let layer = layer(CONTAINERD).unwrap();
        for containers in [None, Some(folder)] {
            assert!(folders(folder, containers).are_around(&layer), "{layer:?}");
        }
        assert!(!folders(folder, Some("/elsewhere")).are_around(&layer));
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
        let here = std::env::temp_dir();
        let disk = measure(&folders(here.to_str().unwrap(), Some("/elsewhere"))).unwrap();
        assert!(disk.size > 0 && disk.free <= disk.size, "{disk:?}");
        let error = measure(&folders("/no/such/folder", None)).unwrap_err();
        assert_eq!(error, "/no/such/folder is not visible in the agent's container");
    }
}
