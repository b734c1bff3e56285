//! What a SidecarSet says where its author said nothing. The hash covers it, so that a rule added here would leave
//! every injected pod behind its set.

use kube_schema::defaults;
use serde_json::Value;

use crate::json::{fill, made};

/// Fills in every default. Values of the wrong type stay: the server or validation refuses them.
pub(super) fn apply(set: &mut Value) {
    let Some(spec) = set.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    fill(spec, "revisionHistoryLimit", 10);
    if let Some(revision) = spec
        .pointer_mut("/injectionStrategy/revision")
        .filter(|one| one.is_object())
    {
        fill(revision, "policy", "Always");
    }
    if let Some(update) = made(spec, "updateStrategy") {
        fill(update, "type", "RollingUpdate");
        fill(update, "partition", 0);
        fill(update, "maxUnavailable", 1);
    }
    for (list, position) in [
        ("containers", "BeforeAppContainer"),
        ("initContainers", "AfterAppContainer"),
    ] {
        for sidecar in items(spec, list) {
            fill(sidecar, "podInjectPolicy", position);
            own(sidecar);
            defaults::older_container(sidecar);
        }
    }
    items(spec, "volumes").for_each(defaults::volume);
    for patch in items(spec, "patchPodMetadata") {
        fill(patch, "patchPolicy", "Retain");
    }
}

fn own(sidecar: &mut Value) {
    if let Some(upgrade) = made(sidecar, "upgradeStrategy") {
        fill(upgrade, "upgradeType", "ColdUpgrade");
    }
    if let Some(share) = made(sidecar, "shareVolumePolicy") {
        fill(share, "type", "disabled");
    }
    for transfer in items(sidecar, "transferEnv") {
        let reference = transfer.pointer_mut("/sourceContainerNameFrom/fieldRef");
        if let Some(reference) = reference.filter(|reference| reference.is_object()) {
            fill(reference, "apiVersion", "v1");
        }
    }
}

fn items<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter(|one| one.is_object())
}
