//! Differences of `v1alpha1`: replicas and partitions of subsets are maps, and CloneSet templates have the shape of
//! `v1alpha1`.

use serde_json::{Map, Value, json};

use crate::cloneset::convert::{V1ALPHA1, to_v1beta1};
use crate::convert::{
    Rule,
    path::{get, set, take},
};

/// Differences between the versions.
pub const RULES: &[Rule] = &[
    Rule::Special {
        newer: clone_set_to_newer,
        older: |_| {},
    },
    Rule::Special {
        newer: maps_to_subsets,
        older: subsets_to_maps,
    },
];

const CLONE_SET: [&str; 4] = ["spec", "template", "cloneSetTemplate", "spec"];
/// Members of an update strategy that only the older CloneSet has there.
const OLDER_STRATEGY: [&str; 7] = [
    "partition",
    "maxUnavailable",
    "maxSurge",
    "paused",
    "priorityStrategy",
    "scatterStrategy",
    "inPlaceUpdateStrategy",
];

/// Converts a CloneSet template to the newer shape. The conversion back restores the older shape from the annotation.
fn clone_set_to_newer(object: &mut Value) {
    let Some(spec) = get(object, &CLONE_SET).filter(|spec| is_of_older_shape(spec)) else {
        return;
    };
    let mut clone_set = json!({"apiVersion": V1ALPHA1, "spec": spec});
    if to_v1beta1(&mut clone_set).is_ok()
        && let Some(spec) = take(&mut clone_set, &["spec"])
    {
        set(object, &CLONE_SET, spec);
    }
}

fn is_of_older_shape(spec: &Value) -> bool {
    let strategy = spec.get("updateStrategy").and_then(Value::as_object);
    let older_type = |kind: &Value| {
        let kind = kind.as_str().unwrap_or_default();
        matches!(kind, "ReCreate" | "InPlaceIfPossible" | "InPlaceOnly")
    };
    let older_strategy = strategy.is_some_and(|strategy| {
        strategy.get("type").is_some_and(older_type)
            || OLDER_STRATEGY.iter().any(|name| strategy.contains_key(*name))
    });
    let newer_strategy = strategy.is_some_and(|strategy| strategy.contains_key("rollingUpdate"));
    !newer_strategy && (older_strategy || get(spec, &["scaleStrategy", "disablePVCReuse"]).is_some())
}

/// Numbers of the maps win over those of the list, and add missing entries to it.
fn maps_to_subsets(object: &mut Value) {
    if !object.get("status").is_some_and(Value::is_object) {
        return;
    }
    let update = take(object, &["status", "updateStatus"]).unwrap_or_default();
    if let Some(revision) = update.get("updatedRevision") {
        set(object, &["status", "updatedRevision"], revision.clone());
    }
    let replicas = take(object, &["status", "subsetReplicas"]).unwrap_or_default();
    let partitions = update.get("currentPartitions").cloned().unwrap_or_default();
    for (member, numbers) in [("replicas", replicas), ("partition", partitions)] {
        for (name, number) in numbers.as_object().into_iter().flatten() {
            set_of_subset(object, name, member, number);
        }
    }
}

fn set_of_subset(object: &mut Value, name: &str, member: &str, number: &Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let subsets = status.entry("subsetStatuses").or_insert_with(|| json!([]));
    let Some(subsets) = subsets.as_array_mut() else {
        return;
    };
    let of_name = |subset: &&mut Value| subset.get("name").is_some_and(|have| have == name);
    match subsets.iter_mut().find(of_name) {
        Some(subset) => set(subset, &[member], number.clone()),
        None => subsets.push(json!({"name": name, member: number})),
    }
}

fn subsets_to_maps(object: &mut Value) {
    let Some(status) = object.get("status").filter(|status| status.is_object()) else {
        return;
    };
    let subsets = status.get("subsetStatuses").and_then(Value::as_array);
    let subsets: Vec<&Value> = subsets.into_iter().flatten().collect();
    let numbers = |member: &str| -> Map<String, Value> {
        let named = subsets.iter().filter_map(|subset| {
            let name = subset.get("name")?.as_str().filter(|name| !name.is_empty())?;
            Some((name.to_owned(), subset.get(member).cloned().unwrap_or(0.into())))
        });
        named.collect()
    };
    let (replicas, partitions) = (numbers("replicas"), numbers("partition"));
    let revision = take(object, &["status", "updatedRevision"]);
    let mut update = json!({});
    if let Some(revision) = revision.filter(|revision| revision != "") {
        set(&mut update, &["updatedRevision"], revision);
    }
    if !partitions.is_empty() {
        set(&mut update, &["currentPartitions"], Value::Object(partitions));
    }
    if update.as_object().is_some_and(|members| !members.is_empty()) {
        set(object, &["status", "updateStatus"], update);
    }
    if !replicas.is_empty() {
        set(object, &["status", "subsetReplicas"], Value::Object(replicas));
    }
}
