//! Subsets of pods that no subset has: those that were created before the WorkloadSpread, or past the webhook.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    names::workloadspread::{IGNORES_METADATA, MATCHED},
    workloadspread::{Matched, Subset, WorkloadSpread},
};
use kruise_plan_kit::{
    Intent, Need, Part, ResourceId, Step,
    fit::Placement,
    pod_writes::{Guard, patch},
    reads::{Read, Reads},
};
use kruise_views::{NodeView, PodView};
use kube_schema::{patch::strategic, table::Table};
use serde_json::{Map, Value, json};

use super::{
    groups::{Group, Place},
    snapshot::Snapshot,
};

/// A pod becomes part of a subset.
const ASSIGN_POD: Intent = Intent::of_update("assign-pod");

/// How long a pod is not read again that fitted no subset.
const UNFIT: SignedDuration = SignedDuration::from_mins(1);

/// What a pod says about nodes, as a pointer.
const REQUIRED: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// What became of the pods that no subset has.
#[derive(Default)]
pub(super) struct Adoptions {
    /// Pods that are to be read first: caches do not have their affinity and tolerations.
    pub(super) reads: Reads,
    /// The write that makes a pod part of a subset, by its uid.
    pub(super) steps: BTreeMap<Box<str>, Step>,
    /// Keys of the attempts: pods that were read and fit no subset, and those that are written now.
    pub(super) attempts: Vec<String>,
}

/// Finds subsets for active pods on a node, and moves them there in the groups.
pub(super) fn adopt(
    snapshot: &Snapshot<'_>,
    groups: &mut BTreeMap<String, Group<'_>>,
    limits: &[Option<i32>],
    now: Timestamp,
) -> Adoptions {
    let mut adoptions = Adoptions::default();
    for group in groups.values_mut() {
        adoptions.group(snapshot, group, limits, now);
    }
    adoptions
}

impl Adoptions {
    fn group(
        &mut self,
        snapshot: &Snapshot<'_>,
        group: &mut Group<'_>,
        limits: &[Option<i32>],
        now: Timestamp,
    ) {
        let mut room: Vec<i64> = limits
            .iter()
            .enumerate()
            .map(|(index, limit)| {
                let active = group.subset(index).filter(|pod| pod.is_active()).count();
                let active = i64::try_from(active).unwrap_or(i64::MAX);
                limit.map_or(i64::MAX, |limit| i64::from(limit).saturating_sub(active))
            })
            .collect();
        for (pod, place) in &mut group.pods {
            if *place != Place::Unmanaged || !pod.is_active() {
                continue;
            }
            let found = match self.subset_of(snapshot, pod, &room, now) {
                Fit::Subset(found) => found,
                Fit::None => continue,
                Fit::Unread => {
                    *place = Place::Unread;
                    continue;
                }
            };
            if let Some(room) = room.get_mut(found) {
                *room = room.saturating_sub(1);
            }
            // Whom it was refused before is in the subset once it has the annotation.
            let key = adoption(snapshot.spread, pod);
            let is_refused = snapshot.memory.attempts.contains_key(&key);
            *place = if is_refused {
                Place::Unread
            } else {
                Place::Subset(found)
            };
            self.attempts.push(key);
            if let Some(subset) = snapshot.spread.spec.subsets.get(found) {
                let step = step(snapshot.spread, subset, pod);
                self.steps.insert(pod.uid.clone(), step);
            }
        }
    }

    /// The subset that fits a pod best.
    fn subset_of(
        &mut self,
        snapshot: &Snapshot<'_>,
        pod: &Arc<PodView>,
        room: &[i64],
        now: Timestamp,
    ) -> Fit {
        let spread = snapshot.spread;
        let Some(node) = pod.node.as_deref().and_then(|node| snapshot.nodes.get(node)) else {
            return Fit::None;
        };
        let may_fit = |subset: &Subset| {
            let term = subset.required_node_selector.as_ref();
            term.is_none_or(|term| matches(term, &node))
        };
        if !spread.spec.subsets.iter().any(may_fit) {
            return Fit::None;
        }
        let key = format!("unfit {} {}", pod.uid, spread.metadata.generation);
        let tried = snapshot.memory.attempts.get(&key);
        if tried.is_some_and(|tried| now.duration_since(tried.last) < UNFIT) {
            return Fit::None;
        }
        let need = Need::Content(ResourceId::PODS, pod.namespace.to_string(), pod.name.to_string());
        let memory = snapshot.memory;
        let tried = memory.attempts.get(&adoption(spread, pod)).copied();
        let Read::Object(read) = self.reads.get(memory, need, tried, now) else {
            return Fit::Unread;
        };
        // It may be another pod of that name by now.
        let is_it = |full: &&Value| full.pointer("/metadata/uid").and_then(Value::as_str) == Some(&*pod.uid);
        let Some(full) = read.filter(is_it) else {
            self.attempts.push(key);
            return Fit::None;
        };
        let found = best(&spread.spec.subsets, full, &node, room);
        if found.is_none() {
            self.attempts.push(key);
        }
        found.map_or(Fit::None, Fit::Subset)
    }
}

/// The key of the attempts to adopt a pod.
fn adoption(spread: &WorkloadSpread, pod: &PodView) -> String {
    format!("adopt {} {}", pod.uid, spread.metadata.generation)
}

/// What is known of the subset of a pod.
enum Fit {
    /// The one of this index.
    Subset(usize),
    /// None fits, or the pod has no node.
    None,
    /// The pod has to be read first, or again.
    Unread,
}

/// The subset with the highest score of those that may have the pod on its node, the first of several.
fn best(subsets: &[Subset], pod: &Value, node: &NodeView, room: &[i64]) -> Option<usize> {
    let fitting = subsets
        .iter()
        .enumerate()
        .filter(|(_, subset)| is_fit(subset, pod, node));
    let scored = fitting.map(|(index, subset)| {
        let has_room = room.get(index).is_some_and(|room| *room > 0);
        let score =
            100 * preference(subset, node) + 10 * i64::from(is_patched(subset, pod)) + i64::from(has_room);
        (score, index)
    });
    // The last of equal ones would win.
    scored
        .max_by_key(|(score, index)| (*score, std::cmp::Reverse(*index)))
        .map(|(_, index)| index)
}

/// Could a pod of the subset be on this node?
fn is_fit(subset: &Subset, pod: &Value, node: &NodeView) -> bool {
    let own = pod.pointer("/spec/tolerations").and_then(Value::as_array);
    let tolerations: Vec<Value> = own
        .into_iter()
        .flatten()
        .chain(&subset.tolerations)
        .cloned()
        .collect();
    let mut template = json!({});
    if let Some(required) = &subset.required_node_selector {
        let own = pod.pointer(REQUIRED).and_then(Value::as_array);
        let terms: Vec<Value> = match own.filter(|own| !own.is_empty()) {
            Some(own) => own.iter().map(|term| extended(term, required)).collect(),
            None => vec![required.clone()],
        };
        template = with_terms(terms.into());
    }
    Placement::new(&template, &tolerations).fit(node).runs()
}

/// A term with the requirements of another one, too.
fn extended(term: &Value, more: &Value) -> Value {
    let mut all = Map::new();
    for member in ["matchExpressions", "matchFields"] {
        let of = |term: &Value| {
            term.get(member)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let (mut list, others) = (of(term), of(more));
        list.extend(others);
        if !list.is_empty() {
            all.insert(member.to_owned(), list.into());
        }
    }
    all.into()
}

fn with_terms(terms: Value) -> Value {
    json!({"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}})
}

/// Does the node match one term, whatever its taints?
fn matches(term: &Value, node: &NodeView) -> bool {
    let anything = json!({"operator": "Exists"});
    Placement::new(&with_terms(json!([term])), &[anything])
        .fit(node)
        .runs()
}

/// The sum of the weights of the preferences that the node has.
fn preference(subset: &Subset, node: &NodeView) -> i64 {
    let preferred = subset.preferred_node_selector.iter();
    let weights = preferred.filter_map(|preferred| {
        let weight = preferred.get("weight").and_then(Value::as_i64)?;
        matches(preferred.get("preference")?, node).then_some(weight)
    });
    // Weights are 1 to 100 each.
    weights.fold(0_i64, |sum, weight| sum.saturating_add(weight.clamp(0, 100)))
}

/// Would the patch of the subset change nothing of the pod but annotations?
fn is_patched(subset: &Subset, pod: &Value) -> bool {
    let Some(patch) = &subset.patch else {
        return true;
    };
    let table = Table::builtin();
    let Some(of) = table.find("core/v1.Pod") else {
        return false;
    };
    let without_annotations = |mut pod: Value| {
        if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("annotations");
        }
        pod
    };
    let patched = strategic(table, of, pod.clone(), patch.clone());
    patched.is_ok_and(|patched| without_annotations(patched) == without_annotations(pod.clone()))
}

/// The write that makes a pod part of a subset: the annotation, and the metadata of its patch unless that is to be
/// ignored.
fn step(spread: &WorkloadSpread, subset: &Subset, pod: &PodView) -> Step {
    let ignores = spread.metadata.annotations.get(IGNORES_METADATA);
    let ignores = ignores.is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let metadata = subset.patch.as_ref().filter(|_| !ignores);
    let metadata = metadata.and_then(|patch| patch.get("metadata")?.as_object());
    let mut metadata = metadata.cloned().unwrap_or_default();
    let matched = Matched {
        name: spread.metadata.name.clone(),
        subset: subset.name.clone(),
        uid: String::new(),
    };
    let annotation = serde_json::to_string(&matched).unwrap_or_default();
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    match annotations.as_object_mut() {
        Some(annotations) => drop(annotations.insert(MATCHED.to_owned(), annotation.into())),
        None => *annotations = json!({MATCHED: annotation}),
    }
    let reason = format!("its node fits subset {}", subset.name);
    let body = json!({"metadata": metadata});
    patch(pod, ASSIGN_POD, Part::Main, body, Guard::SamePod, reason)
}
