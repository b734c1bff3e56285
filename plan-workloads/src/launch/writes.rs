//! The writes: to the barrier, and one to the pod.

use std::collections::BTreeSet;

use kruise_api::names::{LAUNCH_BARRIER_LABEL, LAUNCH_COMPLETED};
use kruise_plan_kit::{Intent, Part, Patch, Precondition, ResourceId, Step, Target, Write, pod_writes};
use kruise_views::{BarrierView, PodView};
use serde_json::{Map, Value, json};

use super::{barrier_of, key};

/// The barrier of a pod, with the keys of the containers that start first.
const CREATE_BARRIER: Intent = Intent::of_scale("create-barrier");
/// Further containers of a pod may start.
const OPEN_BARRIER: Intent = Intent::of_update("open-barrier");
/// A barrier of an earlier pod of the same name is deleted.
const DELETE_BARRIER: Intent = Intent::of_update("delete-barrier");
/// All containers of a pod may start.
const COMPLETE_LAUNCH: Intent = Intent::of_update("complete-launch");

/// A new barrier with these keys.
pub(super) fn create(pod: &PodView, open: &BTreeSet<i64>) -> Step {
    let name = barrier_of(&pod.name);
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": &*pod.namespace,
            "labels": {LAUNCH_BARRIER_LABEL: "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": &*pod.name, "uid": &*pod.uid}],
        },
        "data": data(open),
    });
    step(
        Write::Create {
            intent: CREATE_BARRIER,
            target: barrier(&pod.namespace, &name),
            body: body.into(),
            owner_uid: Some(pod.uid.to_string()),
        },
        open,
    )
}

/// The pod's barrier as OpenKruise made it, without our label.
pub(super) fn adopt(pod: &PodView, uid: &str, open: &BTreeSet<i64>) -> Step {
    let patch = json!({"metadata": {"labels": {LAUNCH_BARRIER_LABEL: "true"}}, "data": data(open)});
    let target = barrier(&pod.namespace, &barrier_of(&pod.name));
    step(patched(OPEN_BARRIER, target, uid, patch), open)
}

/// Further keys.
pub(super) fn open(seen: &BarrierView, missing: &BTreeSet<i64>) -> Step {
    let target = barrier(&seen.namespace, &seen.name);
    let patch = json!({"data": data(missing)});
    step(patched(OPEN_BARRIER, target, &seen.uid, patch), missing)
}

/// Deletes the barrier of another pod.
pub(super) fn delete(seen: &BarrierView) -> Step {
    let write = Write::Delete {
        intent: DELETE_BARRIER,
        target: barrier(&seen.namespace, &seen.name),
        precondition: Precondition::Uid(seen.uid.to_string()),
    };
    Step::new(write, "it is of an earlier pod of this name")
}

/// Nothing is left to be ordered.
pub(super) fn complete(pod: &PodView) -> Step {
    let patch = json!({"metadata": {"annotations": {LAUNCH_COMPLETED: "true"}}});
    let write = patched(COMPLETE_LAUNCH, pod_writes::target(pod), &pod.uid, patch);
    Step::new(write, "all its containers may start")
}

fn step(write: Write, open: &BTreeSet<i64>) -> Step {
    let keys: Vec<String> = open.iter().rev().map(|number| key(*number)).collect();
    let keys = keys.join(", ");
    Step::new(write, format!("containers may start that wait for {keys}"))
}

fn patched(intent: Intent, target: Target, uid: &str, patch: Value) -> Write {
    Write::Patch {
        intent,
        target,
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition: Precondition::Uid(uid.to_owned()),
    }
}

fn barrier(namespace: &str, name: &str) -> Target {
    Target {
        resource: ResourceId::CONFIG_MAPS,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn data(open: &BTreeSet<i64>) -> Map<String, Value> {
    open.iter().map(|number| (key(*number), "true".into())).collect()
}
