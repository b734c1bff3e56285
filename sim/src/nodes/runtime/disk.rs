//! The file system that holds the images of a node.

/// Where it is mounted.
const MOUNTPOINT: &str = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs";

/// The file system that holds the images. The interface tells mount point and used bytes; the rest is what `statfs`
/// of the mount point says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// Where it is mounted.
    pub mountpoint: String,
    /// What images take, in bytes.
    pub used_bytes: u64,
    /// All of its bytes.
    pub size_bytes: u64,
    /// Bytes that nothing takes.
    pub free_bytes: u64,
}

/// A disk without the space that images take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// All of its bytes.
    pub(super) size: u64,
    /// What other files take.
    pub(super) others: u64,
}

impl Disk {
    /// What is free beside images that take so many bytes.
    pub(super) fn free(self, images: u64) -> u64 {
        self.size.saturating_sub(self.others).saturating_sub(images)
    }

    pub(super) fn filesystem(self, images: u64) -> Filesystem {
        Filesystem {
            mountpoint: MOUNTPOINT.to_owned(),
            used_bytes: images,
            size_bytes: self.size,
            free_bytes: self.free(images),
        }
    }
}
