//! What the sender of a write may have believed.

use std::sync::Arc;

use super::{Spec, Write};
use serde_json::Value;

use crate::{history::Watched, mirror::Mirror, object::Object};

/// A pod as a manager may see it: any version from the one it must know to the one before its write.
pub struct Seen<'a> {
    versions: &'a [Arc<Object>],
}

/// What the sender of a write may have believed.
pub struct Knowledge<'a> {
    /// Uid of the set.
    pub set: Arc<str>,
    /// Versions of the set's specification, each of which it may have taken for the newest.
    pub specs: Vec<Spec<'a>>,
    /// The set's pods.
    pub pods: Vec<Seen<'a>>,
    /// `spec.selector.matchLabels`, which never changes.
    selector: &'a Value,
}

impl<'a> Knowledge<'a> {
    /// Of a write.
    pub fn of(write: &Write<'_>, mirror: &'a Mirror) -> Option<Self> {
        let sets = mirror.of(Watched::Sets);
        let set = sets.now().next()?;
        let versions = sets.window(&set.uid, write.sent.floors.of(Watched::Sets));
        let mut specs: Vec<Spec> = Vec::new();
        for version in versions {
            let spec = Spec::of(version);
            if specs.last() != Some(&spec) {
                specs.push(spec);
            }
        }
        let pods = mirror.of(Watched::Pods);
        let floor = write.sent.floors.of(Watched::Pods);
        let end = write.marks[Watched::Pods.index()];
        let newest = end
            .checked_sub(1)
            .and_then(|last| pods.log.get(last))
            .map_or(0, |change| change.version);
        let seen = pods.objects.keys().filter_map(|uid| {
            let window = pods.window(uid, floor);
            let until = window.partition_point(|object| object.version <= newest);
            let versions = window.get(..until)?;
            let ours = versions
                .iter()
                .any(|object| !object.gone && object.owner() == &*set.uid);
            ours.then_some(Seen { versions })
        });
        Some(Self {
            set: set.uid.clone(),
            specs,
            pods: seen.collect(),
            selector: &set.value()["spec"]["selector"]["matchLabels"],
        })
    }

    /// The pod of a name.
    pub fn pod(&self, name: &str) -> Option<&Seen<'a>> {
        self.pods
            .iter()
            .find(|pod| pod.name() == name && !pod.truth().gone)
    }

    /// Is it a pod of the set? One that left the selector is let go.
    pub fn owns(&self, pod: &Object) -> bool {
        let labels = self.selector.as_object().into_iter().flatten();
        pod.owner() == &*self.set && labels.into_iter().all(|(key, value)| pod.label(key) == value)
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
    pub fn allows(&self, rule: impl Fn(&Spec<'a>) -> bool) -> bool {
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
