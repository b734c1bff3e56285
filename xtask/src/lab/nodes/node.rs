//! One real node: a containerd, a kubelet, and everything they make.
//!
//! All of it is in one folder and one tree of control groups, so that it can be ended without asking anybody who may
//! be gone: processes by their groups, mounts by their folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kruise_e2e::process::{self, Signal};

use super::super::address::Address;
use super::super::daemon::Daemon;
use super::super::pki::Pki;
use super::images;
use super::machine::Machine;
use super::network::{self, Network};
use super::{cgroups, mounts, tool};
use crate::interrupt;

const CONTAINERD: &str = include_str!("../../../assets/nodes/containerd.toml");
const HOSTS: &str = include_str!("../../../assets/nodes/hosts.toml");
const KUBELET: &str = include_str!("../../../assets/nodes/kubelet.yaml");
/// The socket's name, in the node's folder.
pub(super) const SOCKET: &str = "containerd.sock";
/// The kernel takes no longer path of a socket.
const LONGEST_SOCKET: usize = 107;

/// What a node is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) index: u32,
    pub(super) dir: &'a Path,
    pub(super) cgroup: &'a str,
    pub(super) machine: &'a Machine,
    pub(super) network: &'a Network,
    pub(super) registry: &'a str,
    pub(super) kube: &'a Path,
    pub(super) pki: &'a Pki,
    pub(super) apiserver: &'a Address,
}

/// The name of a node.
pub(super) fn name(index: u32) -> String {
    format!("real-{index}")
}

impl Node<'_> {
    /// Starts both programs; does not wait until the node is ready.
    pub(super) fn start(&self) -> Result<()> {
        let socket = self.dir.join(SOCKET);
        if socket.as_os_str().len() > LONGEST_SOCKET {
            bail!(
                "{} is too long for a socket: choose a shorter --dir",
                socket.display()
            );
        }
        let config = self.write_configurations(&socket)?;
        cgroups::create(self.cgroup)?;
        let containerd = Daemon {
            name: "containerd",
            dir: self.dir,
        };
        let arguments = ["--config".into(), config.display().to_string()];
        containerd.start(&self.machine.containerd, &arguments)?;
        interrupt::wait_until_true("containerd listens", Duration::from_mins(1), || {
            Ok(socket.exists())
        })
        .with_context(|| format!("its log is {}", containerd.log().display()))?;
        self.start_kubelet()
    }

    fn start_kubelet(&self) -> Result<()> {
        let name = name(self.index);
        let user = format!("system:node:{name}");
        let kubeconfig = self.dir.join("kubeconfig");
        self.pki.client(&name, "system:nodes", &user)?;
        self.pki.write_kubeconfig_of(&name, &kubeconfig, self.apiserver)?;
        let data = self.data();
        let arguments = [
            "kubelet".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--config={}", self.dir.join("kubelet.yaml").display()),
            format!("--root-dir={}", data.join("kubelet").display()),
            format!("--cert-dir={}", data.join("certificates").display()),
            format!("--hostname-override={name}"),
            format!("--node-ip={}", self.network.node(self.index)),
            "--node-labels=type=real".into(),
            "--v=2".into(),
        ];
        Daemon {
            name: "kubelet",
            dir: self.dir,
        }
        .start(self.kube, &arguments)
    }

    /// Writes all files and returns the path of containerd's.
    fn write_configurations(&self, socket: &Path) -> Result<PathBuf> {
        let data = self.data();
        let hosts = data.join("registries/_default");
        let network = data.join("network");
        for folder in [&hosts, &network] {
            std::fs::create_dir_all(folder)?;
        }
        let text = |path: &Path| path.display().to_string();
        let (address, runc) = (self.network.node(self.index), text(&self.machine.runc));
        let (data_text, socket_text) = (text(&data), text(socket));
        let authority = text(&self.pki.path("ca.crt"));
        let values = [
            ("address", address.as_str()),
            ("authority", &authority),
            ("cgroup", self.cgroup),
            ("data", &data_text),
            ("host", images::HOST),
            ("plugins", self.machine.plugins),
            ("registry", self.registry),
            ("runc", &runc),
            ("snapshotter", self.machine.snapshotter),
            ("socket", &socket_text),
        ];
        let containerd = self.dir.join("containerd.toml");
        std::fs::write(&containerd, tool::fill(CONTAINERD, &values)?)?;
        std::fs::write(self.dir.join("kubelet.yaml"), tool::fill(KUBELET, &values)?)?;
        std::fs::write(hosts.join("hosts.toml"), tool::fill(HOSTS, &values)?)?;
        let plugins = self.network.config(self.index, &data)?;
        std::fs::write(network.join("10-lab.conflist"), plugins)?;
        Ok(containerd)
    }

    fn data(&self) -> PathBuf {
        data(self.dir)
    }
}

fn data(dir: &Path) -> PathBuf {
    dir.join("data")
}

/// Ends the node of this folder and group and all its containers; logs stay.
pub(super) fn stop(dir: &Path, cgroup: &str) -> Result<()> {
    for name in ["kubelet", "containerd"] {
        Daemon { name, dir }.kill()?;
    }
    // While the shims live, they reap what dies.
    cgroups::kill(cgroup)?;
    for shim in shims(&dir.join(SOCKET)) {
        // Fails if it ended with its last container, which is what is wanted.
        let _gone = process::signal(shim, Signal::Kill);
    }
    cgroups::remove(cgroup)?;
    let data = data(dir);
    for task in tasks(&data.join("run")) {
        network::forget(&task)?;
        // Its shim may have removed it.
        let _gone = shim_socket(&task).map(std::fs::remove_file);
    }
    mounts::remove(&data)?;
    for socket in [dir.join(SOCKET), dir.join(format!("{SOCKET}.ttrpc"))] {
        let _gone = std::fs::remove_file(socket);
    }
    Ok(())
}

/// Processes between containerd and the containers.
fn shims(socket: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        is_shim(&String::from_utf8_lossy(&arguments), socket)
    })
    .collect()
}

fn is_shim(arguments: &str, socket: &Path) -> bool {
    let mut words = arguments.split('\0');
    words
        .next()
        .is_some_and(|program| program.contains("containerd-shim"))
        && words.any(|word| Path::new(word) == socket)
}

/// The folders that shims have for their containers; each has the container's id for a name.
fn tasks(run: &Path) -> Vec<PathBuf> {
    let tasks = run.join("io.containerd.runtime.v2.task/k8s.io");
    let entries = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Sockets of shims are in a folder that all containerds of the machine share; a shim's own folder names its socket.
fn shim_socket(task: &Path) -> Option<PathBuf> {
    let address = std::fs::read_to_string(task.join("address")).ok()?;
    address.trim().strip_prefix("unix://").map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shim_of_this_containerd_is_one_of_the_nodes() {
        let socket = Path::new("/lab/real-0/containerd.sock");
        let line = |words: &[&str]| words.join("\0");
        let shim = [
            "/usr/bin/containerd-shim-runc-v2",
            "-namespace",
            "k8s.io",
            "-address",
        ];
        assert!(is_shim(
            &line(&[&shim[..], &["/lab/real-0/containerd.sock"]].concat()),
            socket
        ));
        assert!(!is_shim(
            &line(&[&shim[..], &["/lab/real-01/containerd.sock"]].concat()),
            socket
        ));
        assert!(!is_shim(
            &line(&["ctr", "--address", "/lab/real-0/containerd.sock"]),
            socket
        ));
        assert!(!is_shim("", socket));
    }

    #[test]
    fn the_sockets_of_shims_are_read_from_their_folders() {
        let run = std::env::temp_dir().join(format!("kruise-shims-{}", std::process::id()));
        let task = run.join("io.containerd.runtime.v2.task/k8s.io/one");
        std::fs::create_dir_all(&task).unwrap();
        std::fs::write(task.join("address"), "unix:///run/containerd/s/abc").unwrap();
        let sockets = || -> Vec<_> { tasks(&run).iter().filter_map(|task| shim_socket(task)).collect() };
        assert_eq!(sockets(), [PathBuf::from("/run/containerd/s/abc")]);
        std::fs::remove_dir_all(&run).unwrap();
        assert!(sockets().is_empty());
    }
}
