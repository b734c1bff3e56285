//! What the tour needs of a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::act::{Act, ZONE};
use crate::pods::Pod;
use crate::subject::Subject;

/// A workload, its pods and its volume claims at one moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Null before it exists.
    pub set: Value,
    /// Its budget; null before it exists.
    pub budget: Value,
    /// Its debug job; null before it exists.
    pub job: Value,
    /// Names of the pods that have the container of that job.
    pub with_debugger: Vec<String>,
    /// By name.
    pub pods: Vec<Pod>,
    /// Uid of each volume claim, by name.
    pub disks: BTreeMap<String, String>,
    /// Its WorkloadSpread; null before it exists.
    pub spread: Value,
    /// Workloads that belong to it.
    pub children: Vec<Value>,
    /// Copies of what it distributes, by namespace.
    pub copies: BTreeMap<String, Copy>,
    /// The zone of each node, where zones matter.
    pub zones: BTreeMap<String, String>,
}

/// A copy of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    /// Its identity.
    pub uid: String,
    /// What is in it, as it is stored.
    pub data: Value,
}

impl View {
    /// Reads a list of what belongs to a subject.
    ///
    /// # Errors
    /// Something else is in it, or it is no list.
    pub fn of(of: &Subject, list: &Value) -> Result<Self> {
        let items = list
            .get("items")
            .and_then(Value::as_array)
            .context("not a list")?;
        let mut view = Self::default();
        for item in items {
            match item.get("kind").and_then(Value::as_str) {
                Some(kind) if kind == of.kind => view.set = item.clone(),
                Some("CloneSet") => view.children.push(item.clone()),
                Some("WorkloadSpread") => view.spread = item.clone(),
                Some("Secret") => view.copy(item),
                Some("PodUnavailableBudget") => view.budget = item.clone(),
                Some("EphemeralJob") => view.job = item.clone(),
                Some("Pod") => view.pod(item)?,
                Some("PersistentVolumeClaim") => view.claim(item),
                _ => bail!("neither a workload nor a pod nor a volume claim: {item}"),
            }
        }
        Ok(view)
    }

    /// Adds a pod.
    ///
    /// # Errors
    /// It has no uid.
    pub fn pod(&mut self, pod: &Value) -> Result<()> {
        let read = Pod::read(pod)?;
        let containers = pod.pointer("/spec/ephemeralContainers").and_then(Value::as_array);
        if containers.is_some_and(|containers| !containers.is_empty()) {
            self.with_debugger.push(read.name.clone());
        }
        self.pods.push(read);
        Ok(())
    }

    /// Adds a volume claim.
    pub fn claim(&mut self, claim: &Value) {
        self.disks.insert(metadata(claim, "name"), metadata(claim, "uid"));
    }

    /// Adds a copy.
    pub fn copy(&mut self, secret: &Value) {
        let copy = Copy {
            uid: metadata(secret, "uid"),
            data: secret.get("data").cloned().unwrap_or_default(),
        };
        self.copies.insert(metadata(secret, "namespace"), copy);
    }

    /// Adds a node. One without the label of a zone is in none.
    pub fn node(&mut self, node: &Value) {
        let labels = node.pointer("/metadata/labels");
        if let Some(zone) = labels.and_then(|labels| labels.get(ZONE)?.as_str()) {
            self.zones.insert(metadata(node, "name"), zone.to_owned());
        }
    }

    /// The zone of a pod; empty until it has a node.
    pub fn zone(&self, pod: &Pod) -> &str {
        self.zones.get(&pod.node).map_or("", String::as_str)
    }

    /// Has the set's controller seen the newest specification, and does its status satisfy `done`?
    ///
    /// # Errors
    /// `done` is no object.
    pub fn is_done(&self, done: &Value) -> Result<bool> {
        is_done(&self.set, done)
    }
}

/// A text of an object's metadata; empty if there is none.
fn metadata(object: &Value, field: &str) -> String {
    let metadata = object.get("metadata").and_then(|metadata| metadata.get(field));
    metadata.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Has a set's controller seen the newest specification, and does its status satisfy `done`?
///
/// # Errors
/// `done` is no object.
pub fn is_done(set: &Value, done: &Value) -> Result<bool> {
    let Some(done) = done.as_object() else {
        bail!("not an object: {done}")
    };
    let current = set.pointer("/status/observedGeneration") == set.pointer("/metadata/generation");
    let status = set.get("status");
    Ok(current
        && done
            .iter()
            .all(|(key, value)| status.and_then(|status| status.get(key)) == Some(value)))
}

/// Requests that a step caused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Writes of the manager.
    pub manager: u64,
    /// What they were, in words.
    pub shapes: String,
    /// Of the control plane and the kubelets, in the tour's namespace, where they can be counted separately.
    pub others: Option<u64>,
}

/// A cluster in which the tour takes place.
pub trait Stage {
    /// Time between two reads of the pods.
    const PAUSE: Duration;

    /// The file with the manifest of a workload, as the reader is to name it.
    fn manifest(&self, of: &Subject) -> String;

    /// Does something to a workload and returns what the command line prints.
    ///
    /// # Errors
    /// The cluster refuses it.
    fn run(&mut self, of: &Subject, act: &Act) -> Result<String>;

    /// What is there now of a workload.
    ///
    /// # Errors
    /// The cluster does not answer.
    fn view(&mut self, of: &Subject) -> Result<View>;

    /// Requests since the last call.
    ///
    /// # Errors
    /// They cannot be counted.
    fn requests(&mut self) -> Result<Requests>;

    /// Goes on unless the tour is to stop.
    ///
    /// # Errors
    /// The tour is to stop.
    fn check(&self) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::subject::{FLEET, TOKEN, WEB};

    #[test]
    fn a_list_holds_the_set_once_it_exists_and_its_pods() {
        let nothing = View::of(&WEB, &json!({"kind": "List", "items": []})).unwrap();
        assert!(nothing.set.is_null() && nothing.pods.is_empty());
        let set = json!({"kind": "CloneSet", "metadata": {"name": "web"}});
        let pod = json!({"kind": "Pod", "metadata": {"name": "web-1", "uid": "u"}});
        let claim = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data-web-1", "uid": "c"}});
        let budget = json!({"kind": "PodUnavailableBudget", "metadata": {"name": "web"}});
        let view = View::of(&WEB, &json!({"items": [set, pod, claim, budget]})).unwrap();
        assert_eq!((view.set, view.budget, view.pods.len()), (set, budget, 1));
        assert_eq!(view.with_debugger, [""; 0]);
        let debugged = json!({"kind": "Pod", "metadata": {"name": "web-2", "uid": "v"},
            "spec": {"ephemeralContainers": [{"name": "debugger"}]}});
        let job = json!({"kind": "EphemeralJob", "metadata": {"name": "web"}});
        let of_job = View::of(&WEB, &json!({"items": [debugged, job]})).unwrap();
        assert_eq!(
            (of_job.with_debugger, of_job.job),
            (vec!["web-2".to_owned()], job)
        );
        assert_eq!(view.disks, BTreeMap::from([("data-web-1".into(), "c".into())]));
        assert!(
            View::of(&WEB, &json!({"items": [{"kind": "Node"}]})).is_err()
                && View::of(&WEB, &json!({})).is_err()
        );
    }

    #[test]
    fn what_belongs_to_a_set_is_not_the_set() {
        let fleet = json!({"kind": "UnitedDeployment", "metadata": {"name": "fleet"}});
        let child = json!({"kind": "CloneSet", "metadata": {"name": "fleet-zone-a-1"}});
        let pod = json!({"kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n"}});
        let mut view = View::of(&FLEET, &json!({"items": [fleet, child, pod]})).unwrap();
        assert_eq!((&view.set, &view.children), (&fleet, &vec![child]));
        assert_eq!(view.zone(&view.pods[0]), "");
        view.node(&json!({"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "zone-a"}}}));
        view.node(&json!({"metadata": {"name": "m"}}));
        assert_eq!((view.zone(&view.pods[0]), view.zones.len()), ("zone-a", 1));

        let distribution = json!({"kind": "ResourceDistribution", "metadata": {"name": "token"}});
        let secret = json!({"kind": "Secret", "metadata": {"name": "token", "namespace": "eu", "uid": "s"},
            "data": {"token": "eA=="}});
        let view = View::of(&TOKEN, &json!({"items": [distribution, secret]})).unwrap();
        assert_eq!(view.set, distribution);
        let copy = Copy {
            uid: "s".into(),
            data: json!({"token": "eA=="}),
        };
        assert_eq!(view.copies, BTreeMap::from([("eu".to_owned(), copy)]));
    }

    #[test]
    fn a_status_of_an_older_specification_is_not_done() {
        let mut set =
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "replicas": 3}});
        assert!(!is_done(&set, &json!({"replicas": 3})).unwrap());
        set["status"]["observedGeneration"] = json!(2);
        assert!(is_done(&set, &json!({"replicas": 3})).unwrap());
        assert!(!is_done(&set, &json!({"replicas": 4})).unwrap() && is_done(&set, &json!(3)).is_err());
    }
}
