//! What the sender of a write for a workload may have believed.

use std::sync::Arc;

use serde_json::Value;

use crate::engine::oracles::{Mirror, Object, PODS, Resource, Write};

/// A pod as a manager may see it: any version from the one it must know to the one before its write.
pub struct Seen<'a> {
    versions: &'a [Arc<Object>],
}

/// What the sender of a write may have believed of a workload. `S` is what its specification demands.
pub struct Knowledge<'a, S> {
    /// Uid of the workload.
    pub owner: Arc<str>,
    /// Versions of its specification, each of which the sender may have taken for the newest.
    pub specs: Vec<S>,
    /// Its pods.
    pub pods: Vec<Seen<'a>>,
    /// `spec.selector.matchLabels`, which never changes.
    selector: &'a Value,
}

impl<'a, S: PartialEq> Knowledge<'a, S> {
    /// What the sender of a write may have believed of the only workload of a resource.
    pub fn of(
        write: &Write<'_>,
        mirror: &'a Mirror,
        resource: Resource,
        read: impl Fn(&'a Object) -> S,
    ) -> Option<Self> {
        let workloads = mirror.of(resource);
        let workload = workloads.now().next()?;
        let versions = workloads.window(&workload.uid, write.sent.floors.of(resource));
        let mut specs: Vec<S> = Vec::new();
        for version in versions {
            let spec = read(version);
            if specs.last() != Some(&spec) {
                specs.push(spec);
            }
        }
        let pods = mirror.of(PODS);
        let floor = write.sent.floors.of(PODS);
        let end = write.marks.of(PODS);
        let newest = end
            .checked_sub(1)
            .and_then(|last| pods.changes.get(last))
            .map_or(0, |change| change.version);
        let seen = pods.objects.keys().filter_map(|uid| {
            let window = pods.window(uid, floor);
            let until = window.partition_point(|object| object.version <= newest);
            let versions = window.get(..until)?;
            let ours = versions
                .iter()
                .any(|object| !object.gone && object.owner() == &*workload.uid);
            ours.then_some(Seen { versions })
        });
        Some(Self {
            owner: workload.uid.clone(),
            specs,
            pods: seen.collect(),
            selector: &workload.value()["spec"]["selector"]["matchLabels"],
        })
    }

    /// The pod of a name.
    pub fn pod(&self, name: &str) -> Option<&Seen<'a>> {
        self.pods
            .iter()
            .find(|pod| pod.name() == name && !pod.truth().gone)
    }

    /// Is it a pod of the workload? One that left the selector is released.
    pub fn owns(&self, pod: &Object) -> bool {
        let labels = self.selector.as_object().into_iter().flatten();
        pod.owner() == &*self.owner && labels.into_iter().all(|(key, value)| pod.label(key) == value)
    }

    /// Most pods for which something may be believed.
    pub fn most(&self, believed: impl Fn(&Object) -> bool) -> i64 {
        self.pods
            .iter()
            .filter(|pod| pod.may_be(|object| self.owns(object) && believed(object)))
            .count() as i64
    }

    /// Pods for which something must be believed.
    pub fn least(&self, believed: impl Fn(&Object) -> bool) -> i64 {
        self.pods
            .iter()
            .filter(|pod| !pod.may_be(|object| !(self.owns(object) && believed(object))))
            .count() as i64
    }

    /// Is it allowed under some specification?
    pub fn allows(&self, rule: impl Fn(&S) -> bool) -> bool {
        self.specs.iter().any(rule)
    }
}

impl Seen<'_> {
    /// Name.
    pub fn name(&self) -> &str {
        self.versions.first().map_or("", |object| &*object.name)
    }

    /// As it is.
    pub fn truth(&self) -> &Object {
        &self.versions[self.versions.len() - 1]
    }

    /// May this be believed of it?
    pub fn may_be(&self, believed: impl Fn(&Object) -> bool) -> bool {
        self.versions.iter().any(|object| believed(object))
    }
}
