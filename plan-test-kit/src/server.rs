//! Writes as a server carries them out. Patches are applied by the code that the simulated API server uses.

use kruise_plan_kit::{Part, Patch, Precondition};
use kube_schema::{
    patch,
    table::{Table, TypeId},
};
use serde_json::{Value, json};

use crate::wrote;

/// Why the server refuses a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// An object has the name.
    AlreadyExists,
    /// There is no such object.
    NotFound,
    /// A uid or version that is no longer so, or a failed test.
    Conflict,
    /// The content is not allowed.
    Invalid,
}

/// The object as it is stored once it was created.
pub fn create(mut object: Value, name: &str, uid: &str, version: Value, created: &str) -> Value {
    assert_eq!(
        object["metadata"]["name"], *name,
        "the body carries the target's name"
    );
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = version;
    object["metadata"]["creationTimestamp"] = json!(created);
    object
}

/// May the object be deleted under this precondition?
pub fn may_delete(object: &Value, precondition: &Precondition) -> Result<(), Refused> {
    let metadata = &object["metadata"];
    let version = match precondition {
        Precondition::UidAndVersion(_, version) | Precondition::Owned { version, .. } => {
            Some(version.as_str())
        }
        _ => None,
    };
    let is_other = precondition.uid().is_some_and(|uid| metadata["uid"] != uid)
        || version.is_some_and(|version| metadata["resourceVersion"] != version);
    if is_other {
        return Err(Refused::Conflict);
    }
    Ok(())
}

/// Carries a patch out. What changes gets this version. `previous` is the version that the last write of the same
/// object returned, and becomes the one that this returns.
pub fn patch(
    stored: &mut Value,
    (part, patch, precondition): (Part, &Patch, &Precondition),
    previous: &mut Option<String>,
    version: Value,
) -> Result<(), Refused> {
    let body = patch.guarded(precondition, previous.as_deref());
    let changed = patched(stored, &body, patch, part)?;
    if changed != *stored {
        *stored = changed;
        stored["metadata"]["resourceVersion"] = version;
    }
    *previous = stored["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    Ok(())
}

fn patched(stored: &Value, body: &Value, patch: &Patch, part: Part) -> Result<Value, Refused> {
    let mut changed = stored.clone();
    match patch {
        Patch::Json(_) => patch::json(&mut changed, body).map_err(|_| Refused::Conflict)?,
        Patch::Merge(_) | Patch::Strategic(_) => {
            for key in ["uid", "resourceVersion"] {
                let wanted = &body["metadata"][key];
                if !wanted.is_null() && *wanted != stored["metadata"][key] {
                    return Err(Refused::Conflict);
                }
            }
            if matches!(patch, Patch::Merge(_)) {
                merge(&mut changed, body);
            } else {
                strategic(&mut changed, body);
            }
        }
    }
    match part {
        // The main endpoint keeps the status, the status endpoint keeps the specification.
        Part::Main => keep(stored, &mut changed, "status"),
        Part::Status => keep(stored, &mut changed, "spec"),
        Part::Resize => return Ok(resized(stored, &changed)),
        Part::EphemeralContainers => return with_additions(stored, &changed),
    }
    if stored["kind"] == "Pod" {
        assert_pod_update(stored, &changed);
    }
    Ok(changed)
}

fn keep(stored: &Value, changed: &mut Value, member: &str) {
    match stored.get(member) {
        Some(value) => changed[member] = value.clone(),
        None => drop(changed.as_object_mut().unwrap().remove(member)),
    }
}

/// The resize endpoint takes resources of containers, and drops everything else; the server remembers who wrote them.
fn resized(stored: &Value, changed: &Value) -> Value {
    let mut after = stored.clone();
    let names = after["spec"]["containers"].as_array().unwrap().iter();
    let names: Vec<Value> = names.map(|container| container["name"].clone()).collect();
    for (index, name) in names.iter().enumerate() {
        for place in ["limits/cpu", "limits/memory", "requests/cpu", "requests/memory"] {
            let at = format!("/spec/containers/{index}/resources/{place}");
            if stored.pointer(&at) != changed.pointer(&at) {
                wrote(&mut after, "kruise-manager", name.as_str().unwrap(), place);
            }
        }
    }
    let containers = after["spec"]["containers"].as_array_mut().unwrap();
    for (container, wanted) in containers
        .iter_mut()
        .zip(changed["spec"]["containers"].as_array().unwrap())
    {
        assert_eq!(
            container["name"], wanted["name"],
            "the server refuses another order"
        );
        container["resources"] = wanted["resources"].clone();
    }
    after
}

/// The endpoint takes further ephemeral containers, refuses changes of those that are there, and drops everything else.
fn with_additions(stored: &Value, changed: &Value) -> Result<Value, Refused> {
    let list = |pod: &Value| {
        pod["spec"]["ephemeralContainers"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let (before, after) = (list(stored), list(changed));
    if !before.iter().all(|container| after.contains(container)) {
        return Err(Refused::Invalid);
    }
    let mut with = stored.clone();
    if after != before {
        with["spec"]["ephemeralContainers"] = after.into();
    }
    Ok(with)
}

/// The server lets nothing of a pod's specification change but images.
fn assert_pod_update(before: &Value, after: &Value) {
    let masked = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        for container in spec["containers"].as_array_mut().unwrap() {
            container["image"] = Value::Null;
        }
        spec
    };
    assert_eq!(
        masked(before),
        masked(after),
        "the server refuses to change a pod's specification"
    );
}

/// RFC 7386.
pub fn merge(into: &mut Value, patch: &Value) {
    patch::merge(into, patch.clone());
}

/// Kubernetes strategic merge of a pod, its template, or a claim.
pub fn strategic(into: &mut Value, patch: &Value) {
    let table = Table::builtin();
    let of: TypeId = match into["kind"].as_str() {
        Some("PersistentVolumeClaim") => table.find("core/v1.PersistentVolumeClaim").unwrap(),
        _ => table.find("core/v1.Pod").unwrap(),
    };
    *into = patch::strategic(table, of, into.take(), patch.clone()).unwrap();
}
