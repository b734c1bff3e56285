//! Pods and budgets, as the documentation of budgets explains them.

use crate::rules::prelude::*;
use crate::rules::{json, moments};

/// A label that makes a pod unavailable: any that begins like this does.
pub const LABEL: &str = "unavailable-pod.kruise.io/dst";
const PREFIX: &str = "unavailable-pod.kruise.io/";

/// Members of the status that name the pods that are charged.
const MAPS: [&str; 2] = ["disruptedPods", "unavailablePods"];

/// How far anybody may lag behind what users write.
pub const LAG: SignedDuration = SignedDuration::from_secs(60);

/// Annotations of a pod that name its budget.
pub const NAMED: [&str; 2] = ["pub.kruise.io/related-pub", "kruise.io/related-pub"];

/// Name of the budget that a pod names, or `""`.
pub fn named_by(pod: &Object) -> &str {
    let annotations = pod.annotations();
    let mut names = NAMED.iter().map(|key| text(&annotations[*key]));
    names.find(|name| !name.is_empty()).unwrap_or_default()
}

/// Does a pod say that no budget protects it?
pub fn is_exempt(pod: &Object) -> bool {
    pod.annotations()["pub.kruise.io/no-protect"] == "true"
}

/// Does it take its share of the work, with the images that it should have?
pub fn is_available(pod: &Object) -> bool {
    pod.is_ready() && pod.state("KruisePodReady") != "False" && !is_labelled(pod) && runs_its_images(pod)
}

/// Has it a label that makes it unavailable?
pub fn is_labelled(pod: &Object) -> bool {
    pairs(&pod.metadata()["labels"]).any(|(key, _)| key.starts_with(PREFIX))
}

fn runs_its_images(pod: &Object) -> bool {
    let runs = |one: &Value| pod.container_status(one["name"].clone())["image"] == one["image"];
    items(&pod.spec()["containers"]).all(runs)
}

/// How a pod became unavailable on purpose, or was to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It was deleted or evicted, which looks the same.
    Deleted,
    /// Its containers changed, or it was labelled.
    Updated,
    /// Amounts of its containers changed.
    Resized,
    /// A manager took it out of service, to update or to delete it.
    TakenOut,
}

/// What was done to an available pod that makes it unavailable, if anything was.
pub fn route(before: &Object, after: &Object) -> Option<Route> {
    let differ = |member: &str| {
        let of = |pod: &Object| -> Vec<Value> {
            let containers = items(&pod.spec()["containers"]);
            containers.map(|one| one[member].clone()).collect()
        };
        of(before) != of(after)
    };
    let turned = |kind: &str| before.state(kind) != "False" && after.state(kind) == "False";
    if after.is_going() {
        Some(Route::Deleted)
    } else if differ("image") || (is_labelled(after) && !is_labelled(before)) {
        Some(Route::Updated)
    } else if differ("resources") {
        Some(Route::Resized)
    } else if turned("KruisePodReady") || turned("InPlaceUpdateReady") {
        Some(Route::TakenOut)
    } else {
        None
    }
}

impl Route {
    /// The operations that a budget must protect for this to be one of its disruptions, whatever it was.
    pub fn operations(self) -> &'static [&'static str] {
        match self {
            Self::Deleted => &["DELETE", "EVICT"],
            Self::Updated => &["UPDATE"],
            Self::Resized => &["RESIZE"],
            Self::TakenOut => &["DELETE", "EVICT", "UPDATE"],
        }
    }

    /// Is it limited only with the gate for updates?
    pub fn needs_gate(self) -> bool {
        self != Self::Deleted
    }
}

/// Does a budget protect all these operations?
pub fn protects(budget: &Object, operations: &[&str]) -> bool {
    let written: Vec<&str> = texts(&budget.spec()["protectOperations"]).collect();
    // A resize is an update as long as the gate that parts them is off.
    let or_update = |operation: &str| operation == "RESIZE" && written.contains(&"UPDATE");
    let is_named = |operation: &&str| written.contains(operation) || or_update(operation);
    written.is_empty() || operations.iter().all(is_named)
}

/// How many pods a budget keeps of so many.
pub fn desired(budget: &Object, replicas: i64) -> i64 {
    let spec = budget.spec();
    match &spec["maxUnavailable"] {
        Value::Null => rounded_up(&spec["minAvailable"], replicas, 0),
        most => (replicas - rounded_up(most, replicas, 0)).max(0),
    }
}

/// A number of the status.
pub fn number(budget: &Object, name: &str) -> i64 {
    json::number(&budget.status()[name])
}

/// When a pod of this name was charged to a budget, if it is: the latest time of both maps.
pub fn charge(budget: &Object, pod: &str) -> Option<Timestamp> {
    let times = MAPS
        .into_iter()
        .filter_map(|map| time(&budget.status()[map][pod]));
    times.max()
}

/// Names of the pods that are charged to a budget.
pub fn charged(budget: &Object) -> BTreeSet<&str> {
    let charges = MAPS.into_iter().flat_map(|map| pairs(&budget.status()[map]));
    charges.map(|(name, _)| name).collect()
}

/// Versions of an object that were the newest at some time not longer ago than anybody may lag behind.
pub fn recent(versions: &[Arc<Object>], at: Timestamp) -> impl Iterator<Item = &Arc<Object>> {
    let from = moments::before(at, LAG);
    let first = versions.partition_point(|one| one.at <= from).saturating_sub(1);
    let until = versions.partition_point(|one| one.at <= at);
    versions.get(first..until).unwrap_or_default().iter()
}
