//! Pods and budgets, as the documentation of budgets explains them.

use crate::rules::prelude::*;

/// A label that makes a pod unavailable: any that begins like this does.
pub const LABEL: &str = "unavailable-pod.kruise.io/dst";
const PREFIX: &str = "unavailable-pod.kruise.io/";

/// How far anybody may lag behind what users write.
pub const LAG: SignedDuration = SignedDuration::from_secs(60);

/// Name of the budget that a pod names, or `""`.
pub fn named_by(pod: &Object) -> &str {
    let annotations = &pod.value()["metadata"]["annotations"];
    let named = |key: &str| annotations[key].as_str().filter(|name| !name.is_empty());
    named("pub.kruise.io/related-pub")
        .or_else(|| named("kruise.io/related-pub"))
        .unwrap_or_default()
}

/// Does a pod say that no budget protects it?
pub fn is_exempt(pod: &Object) -> bool {
    pod.value()["metadata"]["annotations"]["pub.kruise.io/no-protect"] == "true"
}

/// Does it take its share of the work, with the images that it should have?
pub fn is_available(pod: &Object) -> bool {
    pod.is_ready() && pod.state("KruisePodReady") != "False" && !is_labelled(pod) && runs_its_images(pod)
}

/// Has it a label that makes it unavailable?
pub fn is_labelled(pod: &Object) -> bool {
    let labels = pod.value()["metadata"]["labels"].as_object();
    labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with(PREFIX)))
}

fn runs_its_images(pod: &Object) -> bool {
    let value = pod.value();
    let statuses = &value["status"]["containerStatuses"];
    let containers = value["spec"]["containers"].as_array();
    containers.into_iter().flatten().all(|container| {
        let mut statuses = statuses.as_array().into_iter().flatten();
        statuses.any(|status| status["name"] == container["name"] && status["image"] == container["image"])
    })
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
    let images = |pod: &Object| -> Vec<Value> {
        let containers = pod.value()["spec"]["containers"].as_array();
        let images = containers.into_iter().flatten().map(|one| one["image"].clone());
        images.collect()
    };
    let amounts = |pod: &Object| -> Vec<Value> {
        let containers = pod.value()["spec"]["containers"].as_array();
        let amounts = containers
            .into_iter()
            .flatten()
            .map(|one| one["resources"].clone());
        amounts.collect()
    };
    let turned = |kind: &str| before.state(kind) != "False" && after.state(kind) == "False";
    if after.is_going() {
        Some(Route::Deleted)
    } else if images(before) != images(after) || (is_labelled(after) && !is_labelled(before)) {
        Some(Route::Updated)
    } else if amounts(before) != amounts(after) {
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
    let written = budget.value()["spec"]["protectOperations"].as_array();
    let written: Vec<&str> = written.into_iter().flatten().filter_map(Value::as_str).collect();
    operations.iter().all(|operation| {
        // A resize is an update as long as the gate that parts them is off.
        let or = if *operation == "RESIZE" {
            "UPDATE"
        } else {
            *operation
        };
        written.is_empty() || written.contains(operation) || written.contains(&or)
    })
}

/// How many pods a budget keeps of so many.
pub fn desired(budget: &Object, replicas: i64) -> i64 {
    let spec = &budget.value()["spec"];
    let part = |value: &Value| match value.as_str() {
        Some(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            (percent * replicas + 99) / 100
        }
        None => value.as_i64().unwrap_or(0),
    };
    match &spec["maxUnavailable"] {
        Value::Null => part(&spec["minAvailable"]),
        most => (replicas - part(most)).max(0),
    }
}

/// A number of the status.
pub fn number(budget: &Object, name: &str) -> i64 {
    budget.value()["status"][name].as_i64().unwrap_or(0)
}

/// When a pod of this name was charged to a budget, if it is: the latest time of both maps.
pub fn charge(budget: &Object, pod: &str) -> Option<Timestamp> {
    let maps = ["disruptedPods", "unavailablePods"].into_iter();
    let times = maps.filter_map(|map| budget.value()["status"][map][pod].as_str()?.parse().ok());
    times.max()
}

/// Names of the pods that are charged to a budget.
pub fn charged(budget: &Object) -> Vec<&str> {
    let maps = ["disruptedPods", "unavailablePods"].into_iter();
    let maps = maps.filter_map(|map| budget.value()["status"][map].as_object());
    let mut names: Vec<&str> = maps.flatten().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// When an object was created.
pub fn created(object: &Object) -> Timestamp {
    let text = object.value()["metadata"]["creationTimestamp"].as_str();
    text.and_then(|text| text.parse().ok())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Versions of an object that were the newest at some time not longer ago than anybody may lag behind.
pub fn recent(versions: &[Arc<Object>], at: Timestamp) -> impl Iterator<Item = &Arc<Object>> {
    let from = at.checked_sub(LAG).unwrap_or(at);
    let first = versions.partition_point(|one| one.at <= from).saturating_sub(1);
    let until = versions.partition_point(|one| one.at <= at);
    versions.get(first..until).unwrap_or_default().iter()
}
