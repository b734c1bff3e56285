//! *"Little is touched."* Of a pod of somebody else only images of the set's own sidecars change, with the annotations
//! that record it, and the write is for the version that was looked at.

use super::view;
use super::view::Spec;
use crate::engine::object::is_injected;
use crate::rules::Broken;
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
pub fn judge(write: &Write<'_>, [before, after]: [&Object; 2]) -> Option<Violation> {
    const ORACLE: &str = "a set touches nothing foreign";
    let metadata = &write.body["metadata"];
    never!(write, "writes of a set are for a version",
        metadata["uid"].is_null() || metadata["resourceVersion"].is_null()
            => "wrote pod {} of any version: {}", write.name, write.body);
    let mut paths = Vec::new();
    differences("", before.value(), after.value(), &mut paths);
    let is_ours = |path: &String| OURS.iter().any(|ours| path.starts_with(ours));
    never!(write, ORACLE, some alien in paths.iter().find(|path| !is_ours(path)) => "{alien}");
    never!(write, ORACLE, bare(before) != bare(after) => "more than images of sidecars");
    never!(write, ORACLE, conditions(before) != conditions(after) => "a condition of somebody else");
    None
}

/// The containers, those of sidecars without their images.
fn bare(pod: &Object) -> Value {
    let mut containers = pod.spec()["containers"].clone();
    for container in containers.as_array_mut().into_iter().flatten() {
        if is_injected(container) {
            container["image"] = Value::Null;
        }
    }
    containers
}

/// The conditions of others.
fn conditions(pod: &Object) -> Vec<&Value> {
    let all = items(&pod.status()["conditions"]);
    all.filter(|one| one["type"] != "SidecarSetUpgradable").collect()
}

/// Do only sidecars of the set change, and to what is wanted?
pub fn images([before, after]: [&Object; 2], spec: Spec<'_>, is_upgrade: bool) -> Broken {
    const ORACLE: &str = "images are those of the set";
    let sidecars = spec.sidecars();
    let own: Vec<String> = sidecars.iter().flat_map(view::Sidecar::containers).collect();
    let changes = |name: &str| view::image(before, name) != view::image(after, name);
    let mut all = items(&after.spec()["containers"]).map(|one| text(&one["name"]));
    breaks!(ORACLE, some name in all.find(|name| changes(name) && !own.iter().any(|own| own == name))
        => "{name} is not its own");
    for sidecar in sidecars {
        let works = view::working(after, sidecar.name);
        for name in sidecar.containers() {
            let now = view::image(after, &name);
            // The twin that works runs what is wanted; the other one may still serve, or idles.
            let may_be_old = !is_upgrade || (sidecar.empty.is_some() && works != name.as_str());
            let is_right = now == Some(sidecar.image) || may_be_old;
            let is_wanted = now == Some(sidecar.image) || now == sidecar.empty;
            breaks!(ORACLE, !is_right || (changes(&name) && !is_wanted) => "{name} gets {now:?}");
        }
    }
    None
}
