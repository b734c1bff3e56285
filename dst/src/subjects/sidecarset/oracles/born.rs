//! *"What is injected leaves the pod's own containers as they are, in their order."* Judged of every pod that comes to
//! be, whoever made it.

use super::super::start::SIDECARSETS;
use super::view;
use crate::engine::object::is_injected;
use crate::rules::prelude::*;

/// Pods that were looked at.
#[derive(Debug, Default)]
pub struct Born {
    /// Changes of pods that were looked at.
    looked: usize,
    known: BTreeSet<Arc<str>>,
}

impl Born {
    /// Judges pods that were not there before.
    pub fn judge(&mut self, mirror: &Mirror) -> Option<Violation> {
        let pods = mirror.of(PODS);
        if std::mem::replace(&mut self.looked, pods.changes.len()) == pods.changes.len() {
            return None;
        }
        let new: Vec<&Arc<Object>> = pods
            .objects
            .values()
            .filter_map(|versions| versions.first())
            .filter(|pod| !self.known.contains(&pod.uid))
            .collect();
        for pod in new {
            self.known.insert(pod.uid.clone());
            never!(Violation::of, "injection keeps the pod",
                some what in wrong(pod, mirror) => "pod {} was made so that {what}", pod.name);
        }
        None
    }
}

fn wrong(pod: &Object, mirror: &Mirror) -> Option<String> {
    let containers: Vec<&Value> = items(&pod.value()["spec"]["containers"]).collect();
    let own: Vec<&str> = containers
        .iter()
        .filter(|one| !is_injected(one))
        .filter_map(|one| one["name"].as_str())
        .collect();
    if own != ["main"] {
        return Some(format!("its own containers are {own:?}"));
    }
    let injected = containers.len() - own.len();
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
    let images: Vec<_> = sidecar
        .containers()
        .iter()
        .map(|name| view::image(pod, name))
        .collect();
    match sidecar.empty {
        None => images == [Some(sidecar.image)],
        Some(empty) => images == [Some(sidecar.image), Some(empty)],
    }
}
