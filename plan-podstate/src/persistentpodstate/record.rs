//! The records of the pods of one workload.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::{
    meta::StringMap,
    names::conditions::READY,
    persistentpodstate::{PersistentPodState, PersistentPodStateSpec, PodState},
};
use kruise_plan_kit::{
    Explain, Need, ResourceId, Why,
    injected::is_injected,
    ordinals::Ordinals,
    reads::{Read, Reads},
};
use kruise_views::{NodeView, PodView, WorkloadView};

use super::snapshot::Snapshot;

/// The records as they are to be.
#[derive(Default)]
pub(super) struct Records {
    /// By the name of the pod.
    pub(super) states: BTreeMap<String, PodState>,
    /// Pods whose annotations are to be read first.
    pub(super) reads: Reads,
    /// Pods that wait for a node that does not exist, with the labels that no node has.
    pub(super) stranded: Vec<(String, String)>,
    /// Is a pod on a node that is not known (yet)?
    pub(super) lacks_node: bool,
    /// What was decided about each pod.
    pub(super) why: Vec<Why>,
}

/// Computes the records of a workload that exists.
pub(super) fn records(
    snapshot: &Snapshot<'_>,
    state: &PersistentPodState,
    workload: &WorkloadView,
    now: Timestamp,
) -> Records {
    let mut records = Records {
        states: state.status.pod_states.clone(),
        ..Records::default()
    };
    let mut pods: Vec<&Arc<PodView>> = snapshot.pods.iter().collect();
    pods.sort_by(|a, b| (&a.name, &a.uid).cmp(&(&b.name, &b.uid)));
    for pod in &pods {
        match whether_recorded(pod) {
            Ok(node) => records.record(snapshot, &state.spec, (pod, node), now),
            Err(why) => records.wait(snapshot, &state.spec, pod, why),
        }
    }
    if !state.spec.keeps_scaled_in() {
        records.forget(snapshot, workload, &pods);
    }
    records
}

/// The node of a pod that is recorded now, or why it is not.
fn whether_recorded(pod: &PodView) -> Result<&str, &'static str> {
    if !pod.is_active() {
        return Err("is ending, and its record stays");
    }
    let Some(node) = pod.node.as_deref().filter(|node| !node.is_empty()) else {
        return Err("has no node yet, and its record stays");
    };
    if !pod.is_true(READY) && !is_injected("UnreadyPodRecorded") {
        return Err("is not Ready, and its record stays");
    }
    Ok(node)
}

impl Records {
    fn why(&mut self, snapshot: &Snapshot<'_>, pod: &str, text: impl FnOnce() -> String) {
        if snapshot.explain == Explain::Yes {
            self.why.push(Why::new(pod, text()));
        }
    }

    /// A pod that is Ready on a node.
    fn record(
        &mut self,
        snapshot: &Snapshot<'_>,
        spec: &PersistentPodStateSpec,
        (pod, node_name): (&PodView, &str),
        now: Timestamp,
    ) {
        let before = self.states.get(&*pod.name).cloned().unwrap_or_default();
        let node = snapshot.nodes.get(node_name);
        let annotations = match self.annotations(snapshot, spec, (pod, &before), now) {
            Ok(annotations) => annotations,
            Err(why) => return self.why(snapshot, &pod.name, || why.to_owned()),
        };
        let Some(node) = node else {
            self.lacks_node = true;
            return self.why(snapshot, &pod.name, || {
                format!("is on node {node_name}, which is not known, and its record stays")
            });
        };
        let state = PodState {
            node_name: node_name.to_owned(),
            node_topology_labels: labels(spec, &node, &before),
            annotations,
        };
        self.why(snapshot, &pod.name, || {
            format!(
                "is Ready on node {node_name}, which is recorded with {}",
                text(&state.node_topology_labels)
            )
        });
        self.states.insert(pod.name.to_string(), state);
    }

    /// The annotations of a pod that are recorded. Caches have only their hashes: they are read if the record has
    /// others.
    fn annotations(
        &mut self,
        snapshot: &Snapshot<'_>,
        spec: &PersistentPodStateSpec,
        (pod, before): (&PodView, &PodState),
        now: Timestamp,
    ) -> Result<StringMap, &'static str> {
        let keys = spec.persistent_pod_annotations.iter().map(|one| one.key.as_str());
        let wanted: BTreeSet<&str> = keys.filter(|key| pod.annotation_prints.has_key(key)).collect();
        let is_recorded = |key: &&str| {
            let value = before.annotations.get(*key);
            value.is_some_and(|value| pod.annotation_prints.has(key, value))
        };
        if wanted.iter().all(is_recorded) {
            let kept = before.annotations.iter();
            let kept = kept.filter(|(key, _)| wanted.contains(key.as_str()));
            return Ok(kept.map(|(key, value)| (key.clone(), value.clone())).collect());
        }
        let need = Need::Content(
            ResourceId::PODS,
            snapshot.namespace.to_owned(),
            pod.name.to_string(),
        );
        let read = match self.reads.get(snapshot.memory, need, None, now) {
            Read::Object(read) => read,
            Read::Failed(_) => return Err("cannot be read for its annotations, and its record stays"),
            Read::NotYet => return Err("is to be read for its annotations first"),
        };
        let metadata = read.and_then(|pod| pod.get("metadata"));
        let is_it = |uid: &serde_json::Value| uid.as_str() == Some(&*pod.uid);
        let Some(metadata) = metadata.filter(|metadata| metadata.get("uid").is_some_and(is_it)) else {
            return Err("is another one by now, and its record stays");
        };
        let value = |key: &str| metadata.get("annotations")?.get(key)?.as_str();
        let found = wanted.into_iter().filter_map(|key| {
            let value = value(key)?;
            Some((key.to_owned(), value.to_owned()))
        });
        Ok(found.collect())
    }

    /// A pod that is not recorded now.
    fn wait(&mut self, snapshot: &Snapshot<'_>, spec: &PersistentPodStateSpec, pod: &PodView, why: &str) {
        let record = self.states.get(&*pod.name);
        let lost = record.filter(|_| pod.is_active() && pod.node.is_none());
        let lost = lost.map(|record| required(spec, record));
        let is_met = |labels: &StringMap| snapshot.nodes.any(&|node| has(node, labels));
        match lost.filter(|labels| !labels.is_empty() && !is_met(labels)) {
            Some(labels) => {
                let labels = text(&labels);
                self.why(snapshot, &pod.name, || {
                    format!("waits for a node with {labels}, and there is none")
                });
                self.stranded.push((pod.name.to_string(), labels));
            }
            None => self.why(snapshot, &pod.name, || why.to_owned()),
        }
    }

    /// Drops the records of pods that were scaled in and are gone.
    fn forget(&mut self, snapshot: &Snapshot<'_>, workload: &WorkloadView, pods: &[&Arc<PodView>]) {
        let Some(replicas) = workload.replicas else {
            return;
        };
        let numbering = workload.numbering.as_deref().cloned().unwrap_or_default();
        // Numbers that cannot be read belong to a workload that does not scale.
        let Ok(ordinals) = Ordinals::of(numbering.start, replicas, &numbering.reserved) else {
            return;
        };
        let exists = |name: &str| {
            let found = pods.binary_search_by(|pod| (*pod.name).cmp(name));
            found.is_ok() && !is_injected("RunningPodForgotten")
        };
        let is_wanted = |name: &str| ordinal_of(name).is_none_or(|ordinal| ordinals.contains(ordinal));
        let mut forgotten = Vec::new();
        self.states.retain(|name, _| {
            let is_kept = is_wanted(name) || exists(name);
            if !is_kept {
                forgotten.push(name.clone());
            }
            is_kept
        });
        for name in forgotten {
            self.why(snapshot, &name, || {
                "was scaled in and is gone: its record is dropped".to_owned()
            });
        }
    }
}

/// The labels that are recorded of a node. A label that the same node had when it was recorded stays if it lost it:
/// nodes that register anew have none for a moment.
fn labels(spec: &PersistentPodStateSpec, node: &NodeView, before: &PodState) -> StringMap {
    let is_same = before.node_name == *node.name;
    let recorded = |key: &str| {
        let recorded = before.node_topology_labels.get(key).map(String::as_str);
        recorded.filter(|_| is_same)
    };
    let of_key = |key: &str| {
        let value = node.labels.get(key).or_else(|| recorded(key))?;
        Some((key.to_owned(), value.to_owned()))
    };
    spec.topology_keys().filter_map(of_key).collect()
}

/// The labels of a record that the new node of the pod must have.
fn required(spec: &PersistentPodStateSpec, record: &PodState) -> StringMap {
    let of_key = |key: &str| {
        let value = record.node_topology_labels.get(key)?;
        Some((key.to_owned(), value.clone()))
    };
    spec.required().filter_map(of_key).collect()
}

fn has(node: &NodeView, labels: &StringMap) -> bool {
    let mut labels = labels.iter();
    labels.all(|(key, value)| node.labels.get(key) == Some(value))
}

/// `a=1, b=2`; `no labels` if there are none.
fn text(labels: &StringMap) -> String {
    if labels.is_empty() {
        return "no labels".to_owned();
    }
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(", ")
}

/// The number after the last hyphen of a pod's name.
fn ordinal_of(name: &str) -> Option<i32> {
    let (_, number) = name.rsplit_once('-')?;
    number.parse().ok()
}
