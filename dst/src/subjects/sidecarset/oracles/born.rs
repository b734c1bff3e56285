//! *"What is injected leaves the pod's own containers as they are, in their order."* Judged of every pod that comes to
//! be, whoever made it.

use super::super::start::SIDECARSETS;
use super::view;
use crate::engine::object::is_injected;
use crate::rules::prelude::*;

/// Judges a new pod.
pub fn judge(pod: &Object, mirror: &Mirror) -> Option<Violation> {
    never!(Violation::of, "injection keeps the pod",
        some what in wrong(pod, mirror) => "pod {} was made so that {what}", pod.name);
    None
}

fn wrong(pod: &Object, mirror: &Mirror) -> Option<String> {
    let containers = || items(&pod.spec()["containers"]);
    let own = containers().filter(|one| !is_injected(one));
    let own: Vec<&str> = own.map(|one| text(&one["name"])).collect();
    if own != ["main"] {
        return Some(format!("its own containers are {own:?}"));
    }
    let injected = containers().count() - own.len();
    let sets: Vec<&str> = view::list(pod).collect();
    if sets.is_empty() && injected > 0 {
        return Some(format!("{injected} containers were injected for no set"));
    }
    let all = mirror.of(SIDECARSETS);
    for name in sets {
        let mut versions = all.objects.values().flatten().filter(|set| &*set.name == name);
        let hash = view::hash(pod, name);
        let set = versions.find(|set| view::Spec(set).hash() == hash);
        let Some(set) = set else {
            return Some(format!("its hash {hash} was never one of {name}"));
        };
        let sidecars = view::Spec(set).sidecars();
        let missing = sidecars.iter().find(|one| !is_as_injected(pod, one));
        if let Some(missing) = missing {
            return Some(format!("{} of {name} is not as specified", missing.name));
        }
    }
    None
}

/// Its image, or a twin with it and an idle one.
fn is_as_injected(pod: &Object, sidecar: &view::Sidecar<'_>) -> bool {
    let names = sidecar.containers();
    let images = names.iter().map(|name| view::image(pod, name));
    images.eq([sidecar.image].into_iter().chain(sidecar.empty).map(Some))
}
