//! *"Little is touched."* Of a pod of somebody else only images of the set's own sidecars change, with the annotations
//! that record it, and the write is for the version that was looked at.

use super::change::Change;
use super::view;
use super::view::Spec;
use crate::engine::object::is_injected;
use crate::rules::pod_writes::guards::differences;
use crate::rules::prelude::*;

/// What a SidecarSet may change of a pod.
const OURS: &[&str] = &[
    "/metadata/resourceVersion",
    "/metadata/generation",
    "/metadata/managedFields",
    "/metadata/annotations/kruise.io/sidecarset-",
    "/metadata/annotations/version.sidecarset.kruise.io/",
    "/metadata/annotations/versionalt.sidecarset.kruise.io/",
    "/spec/containers",
    "/status/conditions",
    "/status/observedGeneration",
];

/// Judges the form of a write.
pub fn judge(write: &Write<'_>, change: Change<'_>) -> Option<Violation> {
    let metadata = &write.body["metadata"];
    never!(write, "writes of a set are for a version",
        metadata["uid"].is_null() || metadata["resourceVersion"].is_null()
            => "wrote pod {} of any version: {}", write.name, write.body);
    let Change { before, after } = change;
    let mut paths = Vec::new();
    differences("", before.value(), after.value(), &mut paths);
    let alien = paths
        .into_iter()
        .find(|path| !OURS.iter().any(|ours| path.starts_with(ours)))
        .or_else(|| {
            let (old, new) = (bare(before.value()), bare(after.value()));
            (old != new).then(|| "more than images of sidecars".to_owned())
        })
        .or_else(|| {
            let (old, new) = (conditions(before.value()), conditions(after.value()));
            (old != new).then(|| "a condition of somebody else".to_owned())
        })?;
    write.breaks(
        "a set touches nothing foreign",
        format!("changed {alien} of {}", after.name),
    )
}

/// The containers, those of sidecars without their images.
fn bare(pod: &Value) -> Value {
    let mut containers = pod["spec"]["containers"].clone();
    for container in containers.as_array_mut().into_iter().flatten() {
        if is_injected(container) {
            container["image"] = Value::Null;
        }
    }
    containers
}

/// The conditions of others.
fn conditions(pod: &Value) -> Vec<&Value> {
    let all = items(&pod["status"]["conditions"]);
    all.filter(|one| one["type"] != "SidecarSetUpgradable").collect()
}

/// Do only sidecars of the set change, and to what is wanted?
pub fn images(change: Change<'_>, spec: Spec<'_>, is_upgrade: bool) -> Option<(&'static str, String)> {
    let Change { before, after } = change;
    let oracle = "images are those of the set";
    let sidecars = spec.sidecars();
    let own: Vec<String> = sidecars.iter().flat_map(view::Sidecar::containers).collect();
    let containers = items(&after.value()["spec"]["containers"]);
    for container in containers {
        let name = text(&container["name"]);
        let changed = view::image(before, name) != view::image(after, name);
        if changed && !own.iter().any(|own| own == name) {
            return Some((oracle, format!("{name} is not its own")));
        }
    }
    for sidecar in sidecars {
        let works = view::working(after, sidecar.name);
        for name in sidecar.containers() {
            let now = view::image(after, &name);
            let is_right = match sidecar.empty {
                None => now == Some(sidecar.image) || !is_upgrade,
                // The twin that works runs what is wanted; the other one may still serve, or idles.
                Some(_) => works != name.as_str() || now == Some(sidecar.image) || !is_upgrade,
            };
            let changed = view::image(before, &name) != now;
            let is_wanted = now == Some(sidecar.image) || now == sidecar.empty;
            if !is_right || (changed && !is_wanted) {
                return Some((oracle, format!("{name} gets {now:?}")));
            }
        }
    }
    None
}
