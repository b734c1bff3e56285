//! What the runtime of one node has, and what may go wrong with it.

use std::time::Duration;

use super::disk::Disk;
use super::images::Images;

/// Something that goes wrong on a node, or that is put right again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The runtime ends: its socket is gone, calls that run break, and the kubelet starts and stops nothing until
    /// it is back. Processes of containers go on.
    Away,
    /// The runtime is there again.
    Back,
    /// Every call takes so much longer; zero for none.
    Slow(Duration),
    /// Other files than images take so many bytes of the disk.
    DiskTaken(u64),
    /// The kubelet's garbage collection deletes the image of this reference. One that a container has, even one
    /// that ended, stays.
    ImageCollected(String),
}

/// The runtime of a node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) images: Images,
    pub(super) disk: Disk,
    /// What a call takes at least.
    pub(super) latency: Duration,
    pub(super) is_away: bool,
}

impl Node {
    pub(super) fn new(disk_bytes: u64) -> Self {
        Self {
            images: Images::default(),
            disk: Disk {
                size: disk_bytes,
                others: 0,
            },
            latency: Duration::ZERO,
            is_away: false,
        }
    }
}
