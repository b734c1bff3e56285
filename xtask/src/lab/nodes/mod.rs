//! Real nodes on this machine: kubelets with containerd, joined to the lab's control plane.
//!
//! They need root and some packages, see [`machine`]. Everything they make is noted before it is made, in the cluster's
//! folder, and [`down`] takes it all away again: processes, mounts, control groups, the bridge, settings of the kernel.
//!
//! | module | what |
//! |---|---|
//! | [`machine`] | can this machine do it, and what is missing |
//! | [`registry`], [`images`] | where images come from |
//! | [`network`] | the bridge on which pods have their addresses |
//! | [`node`] | containerd and kubelet |
//! | [`cgroups`], [`mounts`], [`kernel`] | what must be gone afterwards |
//! | [`tool`] | other people's programs |

mod cgroups;
mod images;
mod kernel;
pub(crate) mod machine;
mod mounts;
pub(super) mod network;
mod node;
mod registry;
mod tool;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::address::Address;
use super::pki::Pki;
use machine::Machine;
use network::Network;
use node::Node;
use registry::Registry;

/// How many nodes a cluster may have.
pub(crate) const MOST: u32 = 4;

/// How many nodes, and on what machine.
#[derive(Clone, Debug)]
pub(crate) struct RealNodes {
    pub(crate) count: u32,
    pub(crate) machine: Machine,
    /// A layout with the image of the manager, for managers that run as pods: then pods reach the API server, and it
    /// reaches Services.
    pub(crate) image: Option<PathBuf>,
}

/// What the nodes are joined to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControlPlane<'a> {
    /// Folder of the cluster.
    pub(super) dir: &'a Path,
    pub(super) kube: &'a Path,
    pub(super) pki: &'a Pki,
    pub(super) apiserver: &'a Address,
    pub(super) registry: u16,
}

/// The folder of a cluster's real nodes, in which each has a folder with its name and containerd's socket.
pub(crate) fn folder(cluster: &Path) -> PathBuf {
    cluster.join("nodes")
}

/// Where the API server may listen for containers, one address for each range.
pub(super) fn addresses_of_the_api() -> impl Iterator<Item = String> {
    network::all().map(|network| network.api().host)
}

impl RealNodes {
    /// Whether managers run as pods.
    pub(super) fn runs_managers(&self) -> bool {
        self.image.is_some()
    }

    /// Makes the network of a cluster's nodes.
    pub(super) fn prepare(&self, cluster: &Path) -> Result<Network> {
        let dir = folder(cluster);
        std::fs::create_dir_all(&dir)?;
        kernel::keep(&kernel_note(&dir))?;
        let network = Network::choose()?;
        let note = json!({"network": network.name, "nodes": self.count});
        std::fs::write(note_file(&dir), note.to_string())?;
        network.create(self.count)?;
        Ok(network)
    }

    /// Starts them; does not wait until they are ready.
    pub(super) fn up(&self, plane: &ControlPlane<'_>, network: &Network) -> Result<()> {
        let dir = folder(plane.dir);
        let registry = Registry {
            dir: &registry_folder(&dir),
            port: plane.registry,
        };
        registry.start()?;
        images::push_all(&registry, &self.machine.busybox)?;
        if let Some(layout) = &self.image {
            images::push_layout(&registry, layout)?;
        }
        for index in 0..self.count {
            let dir = dir.join(node::name(index));
            std::fs::create_dir_all(&dir)?;
            Node {
                index,
                dir: &dir,
                cgroup: &cgroup(&network.name, index),
                machine: &self.machine,
                network,
                registry: &registry.url(),
                kube: plane.kube,
                pki: plane.pki,
                apiserver: plane.apiserver,
            }
            .start()?;
        }
        Ok(())
    }
}

/// Ends all real nodes of a cluster's folder and drops what they made; logs stay.
pub(super) fn down(cluster: &Path) -> Result<()> {
    let dir = folder(cluster);
    let note = match std::fs::read(note_file(&dir)) {
        Ok(text) => serde_json::from_slice(&text).context("the note of the nodes cannot be read")?,
        Err(_) => Value::Null,
    };
    if let Some(network) = note.get("network").and_then(Value::as_str) {
        let count = note.get("nodes").and_then(Value::as_u64);
        let count = count.and_then(|count| u32::try_from(count).ok());
        for index in 0..count.unwrap_or(MOST) {
            node::stop(&dir.join(node::name(index)), &cgroup(network, index))?;
        }
        registry::stop(&registry_folder(&dir))?;
        network::remove(network)?;
        std::fs::remove_file(note_file(&dir))?;
    }
    kernel::give_back(&kernel_note(&dir))
}

fn cgroup(network: &str, index: u32) -> String {
    format!("{network}-{index}")
}

fn note_file(dir: &Path) -> PathBuf {
    dir.join("nodes.json")
}

fn kernel_note(dir: &Path) -> PathBuf {
    dir.join("kernel.json")
}

fn registry_folder(dir: &Path) -> PathBuf {
    dir.join("registry")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_nodes_is_down_already() {
        let dir = std::env::temp_dir().join(format!("kruise-no-nodes-{}", std::process::id()));
        down(&dir).unwrap();
        assert!(!dir.exists());
    }
}
