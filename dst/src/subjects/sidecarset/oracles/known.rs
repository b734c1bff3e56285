//! What the sender of a write to a pod may have believed.

use std::sync::Arc;

use super::{memory::Memory, view::Spec};
use crate::engine::oracles::{Mirror, NAMESPACES, Object, PODS, Write};
use crate::subjects::sidecarset::start::SIDECARSETS;

/// A pod as its sender may have seen it.
struct Seen<'a> {
    /// Any of these, of which there is one at least.
    versions: &'a [Arc<Object>],
    /// It cannot have missed that there is one.
    is_known: bool,
}

impl Seen<'_> {
    fn is(&self, uid: &str) -> bool {
        self.versions.first().is_some_and(|object| &*object.uid == uid)
    }
}

/// What the sender may have believed.
pub struct Known<'a> {
    /// Name of the set.
    pub set: &'a str,
    /// Its specifications, each of which may have been taken for the newest.
    pub specs: Vec<Spec<'a>>,
    /// Each pod that was there.
    pods: Vec<Seen<'a>>,
    /// Versions of the namespace.
    namespace: &'a [Arc<Object>],
}

impl<'a> Known<'a> {
    /// Of a write for a set.
    pub fn of(memory: &Memory, write: &Write<'_>, mirror: &'a Mirror, set: &'a str) -> Self {
        let floors = &write.sent.floors;
        let sets = mirror.of(SIDECARSETS);
        let named = sets
            .objects
            .iter()
            .filter(|(_, versions)| versions.first().is_some_and(|object| &*object.name == set));
        let specs = named
            .flat_map(|(uid, _)| sets.window(uid, floors.of(SIDECARSETS)))
            .filter(|object| !object.gone)
            .map(|object| Spec(object));
        let pods = mirror.of(PODS);
        let led = memory.led.get(&write.process).copied().unwrap_or(0);
        let shown = floors.of(PODS).max(led);
        let end = write.marks.of(PODS);
        let newest = end.checked_sub(1).and_then(|last| pods.changes.get(last));
        let newest = newest.map_or(0, |change| change.version);
        let seen = pods.objects.keys().filter_map(|uid| {
            let own = memory.wrote.get(&(write.process, set.to_owned(), uid.clone()));
            let floor = own.copied().unwrap_or(0).max(shown);
            let window = pods.window(uid, floor);
            let until = window.partition_point(|object| object.version <= newest);
            let versions = window.get(..until)?;
            let is_known = versions.first()?.version <= floor;
            Some(Seen { versions, is_known })
        });
        let namespaces = mirror.of(NAMESPACES);
        let namespace = namespaces.named("default");
        Self {
            set,
            specs: specs.collect(),
            pods: seen.collect(),
            namespace: namespace.map_or(&[], |object| {
                namespaces.window(&object.uid, floors.of(NAMESPACES))
            }),
        }
    }

    /// May the set be believed to look at the namespace?
    pub fn may_look(&self, spec: Spec<'_>) -> bool {
        self.namespace.iter().any(|object| !spec.shuns(object))
    }

    fn must_look(&self, spec: Spec<'_>) -> bool {
        self.namespace.iter().all(|object| !spec.shuns(object))
    }

    /// Most pods of the set, but for one, of which something may be believed.
    pub fn most(&self, spec: Spec<'_>, but: &str, believed: impl Fn(&Object) -> bool) -> i64 {
        let may = |object: &Arc<Object>| spec.counts(object) && believed(object);
        let others = self.pods.iter().filter(|pod| !pod.is(but));
        others.filter(|pod| pod.versions.iter().any(may)).count() as i64
    }

    /// Pods of the set, but for one, of which something must be believed.
    pub fn least(&self, spec: Spec<'_>, but: &str, believed: impl Fn(&Object) -> bool) -> i64 {
        if !self.must_look(spec) {
            return 0;
        }
        let must = |object: &Arc<Object>| spec.counts(object) && believed(object);
        let others = self.pods.iter().filter(|pod| pod.is_known && !pod.is(but));
        others.filter(|pod| pod.versions.iter().all(must)).count() as i64
    }
}
