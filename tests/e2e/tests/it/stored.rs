//! Objects that OpenKruise stored, put on the cluster as they were; those of versions before 1.8 are made by hand.
//!
//! The server gives new uids and starts generations anew; owner references and `observedGeneration` follow. Their nodes
//! are nobody's at first, so that nothing but a manager can touch the pods; [`Stored::start_nodes`] brings them to
//! life.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kruise_e2e::kubectl::Kubectl;
use serde_json::{Value, json};

use crate::cluster::{Scenario, text};

/// The only node that a pod of a DaemonSet may be on.
const PINNED: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values";

/// Versions whose fixtures are made by hand. They have what is at rest only.
const BY_HAND: [&str; 2] = ["1.4", "1.7"];

/// A version of OpenKruise, and what it was at when it left: `rest`, or `mid` in a rollout.
pub(crate) type Left = (&'static str, &'static str);

/// Does something with each, all at the same time. Nodes without a kubelet are silent, and after less than a minute
/// the cluster takes notice of that.
pub(crate) fn side_by_side<T: Sync, R: Send>(each: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let act = &act;
    thread::scope(|scope| {
        let running: Vec<_> = each.iter().map(|one| scope.spawn(move || act(one))).collect();
        let ended = running.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Gives what was left to `restore`, with a namespace of its own.
pub(crate) fn restored<R: Send>(
    scenario: &Scenario,
    left: &[Left],
    restore: impl Fn(&Scenario, Left) -> R + Sync,
) -> Vec<(Scenario, R)> {
    side_by_side(left, |(version, phase)| {
        let of = scenario.kubectl.namespace().unwrap();
        let beside = scenario.beside(&format!("{of}-{}-{phase}", version.replace('.', "-")));
        let stored = restore(&beside, (version, phase));
        (beside, stored)
    })
}

/// What one version of OpenKruise left, at rest or half-way through a rollout.
pub(crate) struct Stored {
    kubectl: Kubectl,
    folder: PathBuf,
    phase: &'static str,
    /// uid in the fixture → uid here, of sets.
    owners: BTreeMap<String, Value>,
    nodes: BTreeMap<String, String>,
    are_nodes_alive: AtomicBool,
}

/// Nodes that nobody started would never be ready, and DaemonSets of other scenarios wait for every node. Nobody
/// needs their pods.
impl Drop for Stored {
    fn drop(&mut self) {
        if self.are_nodes_alive.load(Ordering::Relaxed) {
            return;
        }
        let nodes = self.nodes.values().map(String::as_str);
        let delete = ["delete", "node", "--ignore-not-found", "--wait=false"];
        let delete: Vec<&str> = delete.into_iter().chain(nodes).collect();
        let _left = self.kubectl.run(&delete);
        let namespace = self.kubectl.namespace().filter(|_| !thread::panicking());
        if let Some(namespace) = namespace {
            let _left = self
                .kubectl
                .run(&["delete", "namespace", namespace, "--wait=false"]);
        }
    }
}

impl Stored {
    /// What there is of `version`, of which nothing is restored yet.
    pub(crate) fn of(kubectl: &Kubectl, version: &str, phase: &'static str) -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        let origin = if BY_HAND.contains(&version) {
            "by-hand"
        } else {
            "upstream"
        };
        Self {
            kubectl: kubectl.clone(),
            folder: root.join(origin).join(version),
            phase,
            owners: BTreeMap::new(),
            nodes: BTreeMap::new(),
            are_nodes_alive: AtomicBool::new(false),
        }
    }

    /// Restores sets, revisions, claims and pods of `version` into kubectl's namespace.
    pub(crate) fn restore(kubectl: &Kubectl, version: &str, phase: &'static str) -> Self {
        let mut stored = Self::of(kubectl, version, phase);
        stored.sets();
        for file in ["controllerrevisions", "persistentvolumeclaims", "pods"] {
            stored.owned(file);
        }
        stored
    }

    /// As [`Stored::restore`], the DaemonSet with its revisions and pods.
    pub(crate) fn restore_daemonset(kubectl: &Kubectl, version: &str, phase: &'static str) -> Self {
        let mut stored = Self::of(kubectl, version, phase);
        stored.sets_of("daemonsets.v1beta1.apps.kruise.io", "daemonsets.apps.kruise.io");
        for file in ["controllerrevisions", "pods"] {
            stored.owned(file);
        }
        stored
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(format!("{}-{file}.json", self.phase))
    }

    /// The objects of a file.
    pub(crate) fn items(&self, file: &str) -> Vec<Value> {
        let path = self.path(file);
        let list: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let items = if list.is_array() { &list } else { &list["items"] };
        items.as_array().unwrap().clone()
    }

    /// In the version they were stored in: the server's first choice, which not every fixture has beside the older one.
    fn sets(&mut self) {
        let first = if self.path("clonesets").exists() {
            "clonesets"
        } else {
            "clonesets.v1alpha1.apps.kruise.io"
        };
        self.sets_of("clonesets", first);
        self.sets_of(
            "statefulsets.v1beta1.apps.kruise.io",
            "statefulsets.apps.kruise.io",
        );
    }

    fn sets_of(&mut self, resource: &str, file: &str) {
        for set in self.items(file) {
            let created = self.kubectl.create(&anew(&set)).unwrap();
            assert_eq!(
                without_false_reuse(&created["spec"]),
                set["spec"],
                "a stored set needs no default"
            );
            let mut status = set["status"].clone();
            status["observedGeneration"] = created["metadata"]["generation"].clone();
            self.put_status(resource, &created, &status);
            let uid = text(&set, "/metadata/uid");
            self.owners.insert(uid, created["metadata"]["uid"].clone());
        }
    }

    fn owned(&mut self, file: &str) {
        for object in self.items(file) {
            let mut new = anew(&object);
            let owner = text(&new, "/metadata/ownerReferences/0/uid");
            match self.owners.get(&owner) {
                Some(uid) => new["metadata"]["ownerReferences"][0]["uid"] = uid.clone(),
                // Nobody owns claims that a StatefulSet is to retain.
                None if owner.is_empty() && new["metadata"]["labels"]["app"] == "asts" => {}
                None => continue,
            }
            if file == "pods" {
                self.place(&mut new);
            }
            let created = self.kubectl.create(&new).unwrap();
            assert_eq!(created["metadata"]["labels"], object["metadata"]["labels"]);
            if file == "pods" {
                self.put_status("pods", &created, &object["status"]);
            }
        }
    }

    /// Puts a pod on the node that stands for its own, to stay there for as long as the test takes: a node that is
    /// nobody's is unreachable soon, and after five minutes its pods would be evicted.
    pub(crate) fn place(&mut self, pod: &mut Value) {
        let node = self.node(&text(pod, "/spec/nodeName"));
        if let Some(pinned) = pod.pointer_mut(PINNED) {
            *pinned = json!([node]);
        }
        pod["spec"]["nodeName"] = json!(node);
        let tolerations = ["not-ready", "unreachable"].map(|taint| {
            let key = format!("node.kubernetes.io/{taint}");
            json!({"key": key, "operator": "Exists", "effect": "NoExecute"})
        });
        pod["spec"]["tolerations"] = json!(tolerations);
    }

    /// The node that replaces `name`, ready and without a kubelet.
    fn node(&mut self, name: &str) -> String {
        let own = format!("{}-{name}", self.kubectl.namespace().unwrap_or_default());
        if self.nodes.insert(name.to_owned(), own.clone()).is_none() {
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": own},
                // New pods go to nodes that live.
                "spec": {"unschedulable": true},
            });
            let created = self.kubectl.create(&node).unwrap();
            let resources = json!({"cpu": "32", "memory": "256Gi", "pods": "110"});
            let now = created["metadata"]["creationTimestamp"].clone();
            let ready = json!({
                "type": "Ready", "status": "True", "reason": "Restored", "message": "",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            });
            let status = json!({"capacity": resources, "allocatable": resources, "conditions": [ready]});
            self.put_status("nodes", &created, &status);
        }
        own
    }

    pub(crate) fn put_status(&self, resource: &str, object: &Value, status: &Value) {
        let name = text(object, "/metadata/name");
        let patch = json!({"status": status});
        self.kubectl.patch_status(resource, &name, &patch).unwrap();
    }

    /// Gives the nodes a simulated kubelet: kwok takes up nodes as they are created, not as they change.
    pub(crate) fn start_nodes(&self) {
        self.are_nodes_alive.store(true, Ordering::Relaxed);
        for node in self.nodes.values() {
            self.kubectl.run(&["delete", "node", node]).unwrap();
            let alive = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": node, "annotations": {"kwok.x-k8s.io/node": "fake"}},
                "spec": {"unschedulable": true},
            });
            self.kubectl.create(&alive).unwrap();
        }
    }
}

/// The spec without `disablePVCReuse: false`, which means the same as its absence.
fn without_false_reuse(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if spec["scaleStrategy"]["disablePVCReuse"] == false {
        spec["scaleStrategy"]
            .as_object_mut()
            .unwrap()
            .remove("disablePVCReuse");
    }
    spec
}

/// The object without what a server gives.
pub(crate) fn anew(object: &Value) -> Value {
    let mut new = object.clone();
    let metadata = new["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "namespace",
        "managedFields",
    ] {
        metadata.remove(field);
    }
    new
}
