//! What the sender of a write to a pod may have believed.

use super::super::start::SIDECARSETS;
use super::memory::Memory;
use super::view::Spec;
use crate::rules::belief::Seen;
use crate::rules::prelude::*;

/// What the sender may have believed.
pub struct Known<'a> {
    /// Name of the set.
    pub set: &'a str,
    /// Its specifications, each of which may have been taken for the newest.
    pub specs: Vec<Spec<'a>>,
    /// Each pod that was there.
    pods: Vec<Seen<'a>>,
    /// Versions of the namespace.
    namespace: Seen<'a>,
}

impl<'a> Known<'a> {
    /// Of a write for a set.
    pub fn of(memory: &Memory, write: &Write<'_>, mirror: &'a Mirror, set: &'a str) -> Self {
        let named = write
            .sees_all(mirror, SIDECARSETS)
            .filter(|seen| seen.name() == set);
        let specs = named.flat_map(|seen| seen.versions).filter(|object| !object.gone);
        let pods = mirror.of(PODS);
        let led = memory.led.get(&write.process).copied().unwrap_or(0);
        let shown = write.sent.floors.of(PODS).max(led);
        let newest = write.newest_before(pods);
        let seen = pods.objects.keys().filter_map(|uid| {
            let own = memory.wrote.get(&(write.process, set.to_owned(), uid.clone()));
            Seen::of(pods, uid, own.copied().unwrap_or(0).max(shown)).until(newest)
        });
        let namespace = mirror.of(NAMESPACES).named("default");
        Self {
            set,
            specs: specs.map(|object| Spec(object)).collect(),
            pods: seen.collect(),
            namespace: write.sees(mirror, NAMESPACES, namespace.map_or("", |object| &*object.uid)),
        }
    }

    /// May the set be believed to look at the namespace?
    pub fn may_look(&self, spec: Spec<'_>) -> bool {
        self.namespace.may_be(|object| !spec.shuns(object))
    }

    fn others(&self, but: &str) -> impl Iterator<Item = &Seen<'a>> {
        self.pods.iter().filter(move |pod| *pod.first().uid != *but)
    }

    /// Most pods of the set, but for one, of which something may be believed.
    pub fn most(&self, spec: Spec<'_>, but: &str, believed: impl Fn(&Object) -> bool) -> i64 {
        let so = |object: &Object| spec.counts(object) && believed(object);
        self.others(but).filter(|pod| pod.may_be(so)).count() as i64
    }

    /// Pods of the set, but for one, of which something must be believed.
    pub fn least(&self, spec: Spec<'_>, but: &str, believed: impl Fn(&Object) -> bool) -> i64 {
        if self.namespace.may_be(|object| spec.shuns(object)) {
            return 0;
        }
        let so = |object: &Object| spec.counts(object) && believed(object);
        self.others(but).filter(|pod| pod.must_be(so)).count() as i64
    }
}
