//! One cluster: up, down.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager;
use serde_json::{Value, json};

use super::address::Address;
use super::binaries::Binaries;
use super::components::{AUDIT_LOG, Audit, Components};
use super::daemon::Daemon;
use super::nodes::network::Network;
use super::nodes::{self, ControlPlane, RealNodes};
use super::pki::Pki;
use super::ports::Ports;
use crate::interrupt;

const AUDIT_POLICY: &str = include_str!("../../assets/audit-policy.yaml");
const STAGES: &str = include_str!("../../assets/kwok-stages.yaml");

/// Pid files and logs, in the order in which a cluster is stopped.
const DAEMONS: [&str; 6] = [
    PLAYGROUND,
    "kwok",
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "etcd",
];

/// The embedded API with its nodes, in the place of all others.
const PLAYGROUND: &str = "playground";

/// The shell script that starts kube-controller-manager in a cluster that is loaded, in its folder.
pub(crate) const CONTROLLERS: &str = "controllers.sh";

/// How a cluster is started.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) dir: PathBuf,
    pub(crate) nodes: u32,
    pub(crate) port: Option<u16>,
    pub(crate) audit: Audit,
    /// Nodes that run containers, beside the simulated ones.
    pub(crate) real: Option<RealNodes>,
    /// Are objects put into etcd, and read there? Then the controllers of Kubernetes are started by [`CONTROLLERS`]
    /// after that: they must not see owners without what these own.
    pub(crate) loaded: bool,
}

/// A running cluster. It is stopped when dropped, also when that is because of an [interrupt].
#[derive(Debug)]
pub(crate) struct Cluster {
    dir: PathBuf,
    kubectl: PathBuf,
    etcd: Option<SocketAddr>,
    leave: bool,
}

impl Cluster {
    /// Starts a cluster with empty logs and waits until its nodes are ready. From here on interrupts are requests.
    pub(crate) fn up(binaries: &Binaries, settings: &Settings) -> Result<Self> {
        let mut cluster = Self::prepare(binaries, settings)?;
        let ports = Ports::choose(settings.port)?;
        cluster.etcd = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, ports.etcd())));
        cluster.start(binaries, settings, ports)?;
        Ok(cluster)
    }

    /// As [`Cluster::up`], with the playground of `kruise` for a control plane. Its requests are always logged.
    pub(crate) fn up_embedded(binaries: &Binaries, kruise: &Path, settings: &Settings) -> Result<Self> {
        let cluster = Self::prepare(binaries, settings)?;
        let mut arguments: Vec<String> = ["playground", "--bare", "--fast"].map(String::from).into();
        arguments.push(format!("--nodes={}", settings.nodes));
        arguments.push(format!("--port={}", settings.port.unwrap_or(0)));
        arguments.push(format!("--kubeconfig={}", cluster.kubeconfig().display()));
        arguments.push(format!("--audit-log={}", cluster.audit_log().display()));
        let dir = cluster.dir.as_path();
        Daemon {
            name: PLAYGROUND,
            dir,
        }
        .start(kruise, &arguments)?;
        cluster.wait_for("all nodes are ready", PLAYGROUND, || {
            Ok(cluster.kubeconfig().exists() && cluster.ready_nodes()? == settings.nodes as usize)
        })?;
        Ok(cluster)
    }

    /// A folder without what earlier clusters left in it.
    fn prepare(binaries: &Binaries, settings: &Settings) -> Result<Self> {
        interrupt::listen()?;
        std::fs::create_dir_all(&settings.dir)?;
        let dir = settings.dir.canonicalize()?;
        if (Daemon {
            name: "kube-apiserver",
            dir: &dir,
        })
        .is_running()?
        {
            bail!(
                "a cluster is running in {0}; stop it with `cargo xtask lab down --dir {0}`",
                dir.display()
            );
        }
        down(&dir)?;
        begin_logs(&dir)?;
        Ok(Self {
            dir,
            kubectl: binaries.program("kubectl"),
            etcd: None,
            leave: false,
        })
    }

    /// Kubeconfig of the administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("admin.kubeconfig")
    }

    /// Where etcd answers, in plain HTTP. The embedded API has none.
    pub(crate) fn etcd(&self) -> Option<SocketAddr> {
        self.etcd
    }

    /// Folder of the cluster.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The audit log.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.dir.join(AUDIT_LOG)
    }

    /// kubectl for this cluster.
    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubectl, self.kubeconfig())
    }

    /// Do not stop it when dropped.
    pub(crate) fn leave_running(mut self) {
        self.leave = true;
    }

    fn start(&self, binaries: &Binaries, settings: &Settings, ports: Ports) -> Result<()> {
        let dir = self.dir.as_path();
        let pki = Pki::ensure(&dir.join("pki"))?;
        std::fs::write(dir.join("audit-policy.yaml"), AUDIT_POLICY)?;
        std::fs::write(dir.join("kwok-stages.yaml"), STAGES)?;
        let kubeconfig = self.kubeconfig();
        let network = settings.real.as_ref().map(|real| real.prepare(dir)).transpose()?;
        let serves_pods = settings.real.as_ref().is_some_and(RealNodes::runs_managers);
        let api = match &network {
            Some(network) if serves_pods => network.api(),
            _ => Address::loopback(ports.apiserver()),
        };
        pki.write_kubeconfig(&kubeconfig, &api)?;

        let components = Components {
            dir,
            ports,
            api: &api,
            serves_pods,
            pki: &pki,
            audit: settings.audit,
            loaded: settings.loaded,
        };
        let kube = binaries.program("kube");
        let start = |name: &str, program: &Path, arguments: Vec<String>| {
            Daemon { name, dir }.start(program, &arguments)
        };
        start("etcd", &binaries.program("etcd"), components.etcd())?;
        start("kube-apiserver", &kube, components.apiserver())?;
        self.wait_for("/readyz answers", "kube-apiserver", || {
            Ok(self.kubectl().run(&["get", "--raw", "/readyz"])? == "ok")
        })?;
        let controllers = components.controller_manager(&kubeconfig);
        if settings.loaded {
            let name = "kube-controller-manager";
            let script = Daemon { name, dir }.script(&kube, &controllers);
            std::fs::write(dir.join(CONTROLLERS), script)?;
            return Ok(());
        }
        start("kube-controller-manager", &kube, controllers)?;
        start("kube-scheduler", &kube, components.scheduler(&kubeconfig))?;
        if settings.nodes > 0 {
            start("kwok", &binaries.program("kwok"), components.kwok(&kubeconfig))?;
            self.kubectl().apply(&simulated(settings.nodes))?;
            self.wait_for("all simulated nodes are ready", "kwok", || {
                Ok(self.ready_nodes()? == settings.nodes as usize)
            })?;
        }
        let plane = ControlPlane {
            dir,
            kube: &kube,
            pki: &pki,
            apiserver: &api,
            registry: ports.registry(),
        };
        match (&settings.real, &network) {
            (Some(real), Some(network)) => self.start_real(real, &plane, network, settings.nodes),
            _ => Ok(()),
        }
    }

    fn start_real(
        &self,
        real: &RealNodes,
        plane: &ControlPlane<'_>,
        network: &Network,
        simulated: u32,
    ) -> Result<()> {
        real.up(plane, network)?;
        let all = (simulated + real.count) as usize;
        interrupt::wait_until_true("all real nodes are ready", Duration::from_mins(3), || {
            Ok(self.ready_nodes()? == all)
        })
        .with_context(|| format!("their logs are in {}", nodes::folder(&self.dir).display()))
    }

    fn ready_nodes(&self) -> Result<usize> {
        let is_ready = |node: &Value| {
            let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
            conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
        };
        Ok(self
            .kubectl()
            .list("nodes", "")?
            .iter()
            .filter(|node| is_ready(node))
            .count())
    }

    fn wait_for(&self, what: &str, daemon: &str, condition: impl FnMut() -> Result<bool>) -> Result<()> {
        let log = Daemon {
            name: daemon,
            dir: &self.dir,
        }
        .log();
        interrupt::wait_until_true(what, Duration::from_mins(5), condition)
            .with_context(|| format!("{daemon} does not work; its log is {}", log.display()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !self.leave
            && let Err(error) = down(&self.dir)
        {
            eprintln!("the cluster in {} is not stopped: {error:#}", self.dir.display());
        }
    }
}

/// Stops what runs in `dir` and drops its data; logs and certificates stay.
pub(crate) fn down(dir: &Path) -> Result<()> {
    manager::kill_leftover(dir)?;
    nodes::down(dir)?;
    for name in DAEMONS {
        Daemon { name, dir }.kill()?;
    }
    remove(&dir.join("etcd"))
}

/// Drops the logs that are appended to; the daemons begin their own anew.
fn begin_logs(dir: &Path) -> Result<()> {
    [AUDIT_LOG, manager::LOG]
        .into_iter()
        .try_for_each(|log| remove(&dir.join(log)))
}

fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Simulated nodes.
fn simulated(count: u32) -> Value {
    let items: Vec<Value> = (0..count).map(node).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// The simulated node with a number: in one of three zones, with room for every pod a bench makes.
pub(crate) fn node(index: u32) -> Value {
    let room = json!({"cpu": "512", "memory": "2Ti", "pods": "5000"});
    let zone = match index % 3 {
        0 => "zone-a",
        1 => "zone-b",
        _ => "zone-c",
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": format!("kwok-{index}"),
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "kubernetes.io/hostname": format!("kwok-{index}"),
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "type": "kwok",
                "topology.kubernetes.io/zone": zone,
            },
        },
        "status": {"allocatable": room, "capacity": room},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_down_drops_the_data_and_keeps_the_logs_until_the_next_start() {
        let dir = std::env::temp_dir().join(format!("kruise-cluster-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("etcd/member")).unwrap();
        let logs = ["audit.log", "manager.log", "etcd.log"].map(|log| dir.join(log));
        for log in &logs {
            std::fs::write(log, "earlier").unwrap();
        }
        down(&dir).unwrap();
        assert!(!dir.join("etcd").exists() && logs.iter().all(|log| log.exists()));
        begin_logs(&dir).unwrap();
        let left = logs.each_ref().map(|log| log.exists());
        assert_eq!(left, [false, false, true], "a daemon truncates its own log");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
