//! What a SidecarSet says where its author said nothing. The hash covers it, so that a rule added here would leave
//! every injected pod behind its set.

use kube_schema::defaults;
use serde_json::{Map, Value, json};

/// Fills in every default. Values of the wrong type stay: the server or validation refuses them.
pub(super) fn apply(set: &mut Value) {
    let Some(spec) = set.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    fill(spec, "revisionHistoryLimit", json!(10));
    if let Some(revision) = spec
        .pointer_mut("/injectionStrategy/revision")
        .filter(|one| one.is_object())
    {
        fill(revision, "policy", json!("Always"));
    }
    if let Some(update) = object(spec, "updateStrategy") {
        fill(update, "type", json!("RollingUpdate"));
        fill(update, "partition", json!(0));
        fill(update, "maxUnavailable", json!(1));
    }
    for (list, position) in [
        ("containers", "BeforeAppContainer"),
        ("initContainers", "AfterAppContainer"),
    ] {
        for sidecar in items(spec, list) {
            fill(sidecar, "podInjectPolicy", json!(position));
            own(sidecar);
            defaults::older_container(sidecar);
        }
    }
    items(spec, "volumes").for_each(defaults::volume);
    for patch in items(spec, "patchPodMetadata") {
        fill(patch, "patchPolicy", json!("Retain"));
    }
}

fn own(sidecar: &mut Value) {
    if let Some(upgrade) = object(sidecar, "upgradeStrategy") {
        fill(upgrade, "upgradeType", json!("ColdUpgrade"));
    }
    if let Some(share) = object(sidecar, "shareVolumePolicy") {
        fill(share, "type", json!("disabled"));
    }
    for transfer in items(sidecar, "transferEnv") {
        let reference = transfer.pointer_mut("/sourceContainerNameFrom/fieldRef");
        if let Some(reference) = reference.filter(|reference| reference.is_object()) {
            fill(reference, "apiVersion", json!("v1"));
        }
    }
}

/// Sets a member that is absent, `null` or an empty text.
fn fill(object: &mut Value, name: &str, default: Value) {
    let is_empty = object
        .get(name)
        .is_none_or(|value| value.is_null() || value.as_str() == Some(""));
    if let (true, Some(members)) = (is_empty, object.as_object_mut()) {
        members.insert(name.to_owned(), default);
    }
}

/// A member that is an object, made if it is absent.
fn object<'a>(parent: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    fill(parent, name, Map::new().into());
    parent.get_mut(name).filter(|value| value.is_object())
}

fn items<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter(|one| one.is_object())
}
