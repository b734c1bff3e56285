//! Nodes: they start the pods of a model cluster, restart their containers, and report on them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{Cluster, condition, text};

impl Cluster {
    /// The scheduler binds a pod.
    pub fn bind(&mut self, name: &str, node: &str) {
        self.touch(name, |pod, _, _| {
            if pod["spec"]["nodeName"].is_null() {
                pod["spec"]["nodeName"] = json!(node);
            }
        });
    }

    /// The node starts what is to be started, restarts what has a new image, and reports readiness. A crashed
    /// container stays down until [`Self::recover`].
    pub fn kubelet(&mut self, name: &str) {
        let broken = self.broken_image.clone();
        self.touch(name, |pod, now, serial| {
            let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
            if pod["spec"]["nodeName"].is_null() || ended {
                return;
            }
            pod["status"]["phase"] = json!("Running");
            let containers = pod["spec"]["containers"].as_array().unwrap().clone();
            let statuses: Vec<Value> = containers
                .iter()
                .map(|container| run(pod, container, serial, broken.as_deref()))
                .collect();
            pod["status"]["containerStatuses"] = json!(statuses);
            report_readiness(pod, now);
        });
    }

    /// A container stops passing its probe.
    pub fn crash(&mut self, name: &str) {
        self.touch(name, |pod, now, _| {
            if pod["status"]["containerStatuses"].is_array() {
                pod["status"]["containerStatuses"][0]["ready"] = json!(false);
                report_readiness(pod, now);
            }
        });
    }

    /// It passes again, after a restart.
    pub fn recover(&mut self, name: &str) {
        let broken = self.broken_image.clone();
        self.touch(name, |pod, now, _| {
            if let Some(status) = pod.pointer_mut("/status/containerStatuses/0")
                && status["ready"] == false
                && status["image"].as_str() != broken.as_deref()
            {
                let restarts = status["restartCount"].as_i64().unwrap_or(0);
                status["ready"] = json!(true);
                status["restartCount"] = json!(restarts + 1);
                report_readiness(pod, now);
            }
        });
    }

    /// The node evicts a pod.
    pub fn evict(&mut self, name: &str) {
        self.touch(name, |pod, now, _| {
            pod["status"]["phase"] = json!("Failed");
            set_truth(pod, "Ready", false, now);
        });
    }

    /// A pod that is being deleted is gone.
    pub fn terminate(&mut self, name: &str) {
        if self
            .pods
            .get(name)
            .is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
        {
            self.pods.remove(name);
            self.collect_soon();
        }
    }
}

fn run(pod: &Value, container: &Value, serial: u64, broken: Option<&str>) -> Value {
    let (name, image) = (&container["name"], &container["image"]);
    let statuses = pod["status"]["containerStatuses"].as_array();
    let before = statuses.and_then(|list| list.iter().find(|status| status["name"] == *name));
    let memory = |resources: &Value| resources["limits"]["memory"].clone();
    let given = &container["resources"];
    match before {
        Some(same) if same["image"] == *image && memory(&same["resources"]) == memory(given) => {
            let mut same = same.clone();
            same["resources"] = given.clone();
            same
        }
        before => json!({
            "name": name, "image": image, "resources": given, "imageID": format!("sha256:{}", image.as_str().unwrap()),
            "containerID": format!("cri://{serial}"), "ready": image.as_str() != broken,
            "restartCount": before.map_or(0, |status| status["restartCount"].as_i64().unwrap_or(0) + 1),
        }),
    }
}

fn report_readiness(pod: &mut Value, now: Timestamp) {
    let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
    let containers = statuses.iter().all(|status| status["ready"] == true);
    let gates = pod["spec"]["readinessGates"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let gates = gates
        .iter()
        .all(|gate| condition(pod, gate["conditionType"].as_str().unwrap()) == Some("True"));
    set_truth(pod, "ContainersReady", containers, now);
    set_truth(pod, "Ready", containers && gates, now);
}

fn set_truth(pod: &mut Value, kind: &str, truth: bool, now: Timestamp) {
    let wanted = if truth { "True" } else { "False" };
    if condition(pod, kind) == Some(wanted) {
        return;
    }
    crate::set_condition(pod, kind, wanted, &text(now));
}
