//! Containers and processes as containerd lists them, and what servers in pods answer.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::text;

/// A running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) id: String,
    /// The process id of its first process, on this machine.
    pub(super) pid: u32,
}

/// What runs of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Processes {
    pub(super) sandboxes: Vec<Running>,
    /// By the container's name.
    pub(super) containers: BTreeMap<String, Running>,
}

/// The nodes' containerds.
pub(super) struct Runtime {
    /// Has a folder for each node, with containerd's socket.
    pub(super) folder: PathBuf,
}

impl Runtime {
    /// What runs of a pod right now.
    pub(super) fn processes(&self, pod: &Value) -> Processes {
        let node = text(pod, "/spec/nodeName");
        let of_pod = format!("labels.\"io.kubernetes.pod.uid\"=={}", text(pod, "/metadata/uid"));
        let tasks = self.ctr(&node, &["tasks", "list"]);
        let mut processes = Processes {
            sandboxes: Vec::new(),
            containers: BTreeMap::new(),
        };
        for id in self
            .ctr(&node, &["containers", "list", "--quiet", &of_pod])
            .lines()
        {
            let Some(pid) = running(&tasks, id) else { continue };
            let info = self.ctr(&node, &["containers", "info", id]);
            let info: Value = serde_json::from_str(&info).unwrap();
            let running = Running { id: id.into(), pid };
            match info["Labels"]["io.kubernetes.container.name"].as_str() {
                Some(name) => drop(processes.containers.insert(name.into(), running)),
                None => processes.sandboxes.push(running),
            }
        }
        processes
    }

    /// Does a node have an image of this name?
    pub(super) fn has(&self, node: &str, image: &str) -> bool {
        let images = self.ctr(node, &["images", "list", "--quiet"]);
        images.lines().any(|name| name == image)
    }

    /// Digest of an image that a node has.
    pub(super) fn digest(&self, node: &str, image: &str) -> String {
        let images = self.ctr(node, &["images", "list", &format!("name=={image}")]);
        let digest = images.split_whitespace().find(|word| word.starts_with("sha256:"));
        digest.unwrap().to_owned()
    }

    /// Removes an image from a node, under all of its names.
    pub(super) fn forget(&self, node: &str, image: &str) {
        if self.has(node, image) {
            let digest = self.digest(node, image);
            let images = self.ctr(node, &["images", "list"]);
            let same = images.lines().filter(|line| line.contains(&digest));
            let names = same.filter_map(|line| line.split_whitespace().next());
            let mut line = vec!["images", "remove", "--sync"];
            line.extend(names);
            self.ctr(node, &line);
        }
    }

    fn ctr(&self, node: &str, arguments: &[&str]) -> String {
        let output = Command::new("ctr")
            .arg("--address")
            .arg(self.folder.join(node).join("containerd.sock"))
            .args(["--namespace", "k8s.io"])
            .args(arguments)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ctr {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The process id of a container in a table of tasks, if it runs.
fn running(tasks: &str, id: &str) -> Option<u32> {
    let rows = tasks
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.into_iter().find(|row| row.first() == Some(&id))?;
    (row.get(2) == Some(&"RUNNING")).then(|| row[1].parse().unwrap())
}

/// The version that the pod's server returns; `None` without an answer.
pub(crate) fn version(pod: &Value) -> Option<String> {
    version_at(pod, 80)
}

/// As [`version`], of the server at this port.
pub(super) fn version_at(pod: &Value, port: u16) -> Option<String> {
    let address = SocketAddr::new(text(pod, "/status/podIP").parse().ok()?, port);
    let limit = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&address, limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    stream.write_all(b"GET /version HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.contains(" 200 ").then(|| body.trim().to_owned())
}

#[test]
fn only_a_task_that_runs_has_a_process() {
    let table = "TASK    PID     STATUS    \na1    12    RUNNING\nb2    13    STOPPED\n";
    assert_eq!(running(table, "a1"), Some(12));
    assert_eq!([running(table, "b2"), running(table, "a")], [None, None]);
}
