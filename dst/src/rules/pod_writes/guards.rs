//! *"A write carries the precondition its action needs, and changes only what is ours."*

use super::super::labels::UPDATE_HOOK;
use crate::rules::prelude::*;

/// Judges the form of a write and what it changed.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    unguarded(write)
        .or_else(|| killed(write))
        .or_else(|| foreign(write, mirror))
        .or_else(|| rewritten(write, mirror, "revisions are stable", false))
}

/// A name may belong to another pod by the time a request arrives; its uid does not.
fn unguarded(write: &Write<'_>) -> Option<Violation> {
    let uid = match (write.resource, write.method) {
        ("pods" | "persistentvolumeclaims", Method::Delete) => &write.body["preconditions"]["uid"],
        ("pods" | "persistentvolumeclaims", Method::Patch) => match &write.body {
            Value::Array(operations) => {
                let test = operations
                    .iter()
                    .find(|one| one["op"] == "test" && one["path"] == "/metadata/uid")?;
                &test["value"]
            }
            body => &body["metadata"]["uid"],
        },
        _ => return None,
    };
    never!(write, "preconditions", uid.is_null() => "it does not name its uid: {}", write.body);
    None
}

/// A pod that is deleted without its grace period may run beside the next one of its name.
fn killed(write: &Write<'_>) -> Option<Violation> {
    let is_deletion = write.resource == "pods" && write.method == Method::Delete;
    never!(write, "pods end in their own time",
        is_deletion && !write.body["gracePeriodSeconds"].is_null() => "{}", write.body);
    None
}

/// What a manager may change of a pod: labels and annotations of its own and of the template, images, conditions, and
/// its own reference of ownership.
fn foreign(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" || write.method != Method::Patch {
        return None;
    }
    let versions = mirror.of(PODS).changed_at(write.marks.of(PODS))?;
    let [.., before, after] = versions else {
        return None;
    };
    let mut paths = Vec::new();
    differences("", before.value(), after.value(), &mut paths);
    // An updated pod that is chosen again is held anew: the hook's label comes with that state.
    let held = after.label(STATE) == "PreparingUpdate" && after.has_label(UPDATE_HOOK);
    let is_hold = |path: &str| held && path.strip_prefix("/metadata/labels/") == Some(UPDATE_HOOK);
    let is_identity = |path: &str| write.component == "statefulset-controller" && IDENTITY.contains(&path);
    let is_ours = |path: &str| OURS.iter().any(|ours| path.starts_with(ours));
    let alien = paths
        .into_iter()
        .find(|path| !is_hold(path) && !is_identity(path) && !is_ours(path))?;
    write.breaks(
        "nothing foreign is touched",
        format!("changed {alien} of {}", after.name),
    )
}

/// Labels of a pod that is one of an ordinal.
const IDENTITY: &[&str] = &[
    "/metadata/labels/statefulset.kubernetes.io/pod-name",
    "/metadata/labels/apps.kubernetes.io/pod-index",
];

const OURS: &[&str] = &[
    "/metadata/resourceVersion",
    "/metadata/generation",
    "/metadata/managedFields",
    "/metadata/ownerReferences",
    "/metadata/annotations/apps.kruise.io/",
    "/metadata/annotations/lifecycle.apps.kruise.io/",
    "/metadata/annotations/team",
    "/metadata/annotations/config",
    "/metadata/labels/apps.kruise.io/",
    "/metadata/labels/lifecycle.apps.kruise.io/",
    "/metadata/labels/controller-revision-hash",
    "/metadata/labels/pod-template-hash",
    "/spec/containers",
    "/status/conditions",
    "/status/observedGeneration",
];

/// Paths at which two values differ.
pub fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (old, new) if old == new => {}
        (Value::Object(old), Value::Object(new)) => {
            for key in old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))) {
                let pair = (
                    old.get(key).unwrap_or(&Value::Null),
                    new.get(key).unwrap_or(&Value::Null),
                );
                differences(&format!("{path}/{key}"), pair.0, pair.1, found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// The content of a revision never changes, and no other one has the same; with `several` owners, none of the same
/// owner.
pub fn rewritten(
    write: &Write<'_>,
    mirror: &Mirror,
    oracle: &'static str,
    several: bool,
) -> Option<Violation> {
    let revisions = mirror.of(REVISIONS);
    let written = Some(write).filter(|write| write.resource == "controllerrevisions")?;
    let versions = revisions.changed_at(written.marks.of(REVISIONS))?;
    let after = versions.last()?;
    if let [.., before, after] = versions {
        never!(write, oracle, before.value()["data"] != after.value()["data"] => "its content is another one");
    }
    let is_twin = |other: &&Arc<Object>| {
        other.uid != after.uid
            && (!several || other.owner() == after.owner())
            && other.value()["data"] == after.value()["data"]
            && !after.gone
    };
    never!(write, oracle, some twin in revisions.now().find(is_twin) => "{} is the same", twin.name);
    None
}
