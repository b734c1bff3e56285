//! What the sender of a write for a StatefulSet may have believed.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use super::spec::{Gates, Spec};
use crate::engine::oracles::{Mirror, Object, PODS, ProcessId, Write};
use crate::subjects::statefulset::start::STATEFULSETS;

/// Newest version of each pod that its last writer wrote: what it wrote itself, it must know.
pub type Wrote = BTreeMap<Arc<str>, (ProcessId, u64)>;

/// Name of an oracle, and what it demands of a write under a specification.
pub type Rule<'r> = (&'static str, &'r dyn Fn(&Spec<'_>) -> bool);

/// A pod as the sender may have seen it.
pub struct Seen<'a> {
    /// Any of these, of which there is one at least.
    versions: &'a [Arc<Object>],
    /// It cannot have missed that there is one.
    is_known: bool,
    /// Its ordinal.
    pub ordinal: i64,
}

impl Seen<'_> {
    /// May this be believed of it?
    pub fn may_be(&self, believed: impl Fn(&Object) -> bool) -> bool {
        self.versions.iter().any(|object| believed(object))
    }

    /// Must this be believed of it?
    pub fn must_be(&self, believed: impl Fn(&Object) -> bool) -> bool {
        self.is_known && self.versions.iter().all(|object| believed(object))
    }
}

/// What the sender of a write may have believed of a StatefulSet.
pub struct Known<'a> {
    /// Uid of the StatefulSet.
    pub uid: Arc<str>,
    /// Its specifications, each of which may have been taken for the newest; those of one that is being deleted demand
    /// nothing.
    pub specs: Vec<Spec<'a>>,
    /// Pods that may be its own.
    pods: Vec<Seen<'a>>,
    /// When the write was accepted.
    now: Timestamp,
}

/// The ordinal in a name, if it is one as StatefulSets give them.
pub fn ordinal(name: &str) -> Option<i64> {
    let text = name.strip_prefix("web-")?;
    let number: i32 = text.parse().ok()?;
    (number >= 0 && number.to_string() == text).then_some(number.into())
}

/// Do labels make it a pod of the StatefulSet?
pub fn is_selected(pod: &Object) -> bool {
    pod.label("app") == "web"
}

/// A pod that failed or is done.
pub fn has_ended(pod: &Object) -> bool {
    let phase = &pod.value()["status"]["phase"];
    phase == "Failed" || phase == "Succeeded"
}

impl<'a> Known<'a> {
    /// What the sender may have believed of the StatefulSet with this uid.
    pub fn of(write: &Write<'_>, mirror: &'a Mirror, uid: &str, gates: Gates, wrote: &Wrote) -> Self {
        let floors = &write.sent.floors;
        let mut specs: Vec<Spec<'a>> = Vec::new();
        for version in mirror.of(STATEFULSETS).window(uid, floors.of(STATEFULSETS)) {
            let spec = Spec::of(version, gates);
            if !version.is_going() && specs.last() != Some(&spec) {
                specs.push(spec);
            }
        }
        let pods = mirror.of(PODS);
        let end = write.marks.of(PODS);
        let newest = end.checked_sub(1).and_then(|last| pods.changes.get(last));
        let newest = newest.map_or(0, |change| change.version);
        let seen = pods.objects.keys().filter_map(|pod| {
            let own = wrote.get(pod).filter(|(process, _)| *process == write.process);
            let floor = own.map_or(0, |(_, version)| *version).max(floors.of(PODS));
            let window = pods.window(pod, floor);
            let until = window.partition_point(|object| object.version <= newest);
            let versions = window.get(..until)?;
            let first = versions.first()?;
            let is_ours = |object: &Arc<Object>| object.owner() == uid && is_selected(object);
            versions.iter().any(is_ours).then_some(Seen {
                versions,
                is_known: first.version <= floor,
                ordinal: ordinal(&first.name)?,
            })
        });
        Self {
            uid: uid.into(),
            specs,
            pods: seen.collect(),
            now: write.now,
        }
    }

    /// The pod that a write is about, if it may still be there. An earlier pod of its name may be known, too.
    pub fn pod(&self, written: &Object) -> Option<&Seen<'a>> {
        let mut pods = self.pods.iter();
        pods.find(|pod| pod.may_be(|object| object.uid == written.uid && !object.is_going()))
    }

    fn is_ours(&self, pod: &Object) -> bool {
        pod.owner() == &*self.uid && is_selected(pod)
    }

    /// May the pod of a slot be available?
    fn may_be_available(&self, slot: i64, spec: &Spec<'_>) -> bool {
        let is_available =
            |object: &Object| self.is_ours(object) && object.is_available(spec.min_ready_seconds, self.now);
        let mut pods = self.pods.iter();
        pods.any(|pod| pod.ordinal == slot && pod.may_be(is_available))
    }

    /// Slots of which no pod can be available, but for one.
    pub fn unavailable(&self, spec: &Spec<'_>, but: i64) -> i64 {
        let others = spec.slots.iter().filter(|slot| **slot != but);
        others.filter(|slot| !self.may_be_available(**slot, spec)).count() as i64
    }

    /// May all slots below an ordinal be available?
    pub fn are_available_below(&self, spec: &Spec<'_>, ordinal: i64) -> bool {
        let mut below = spec.slots.iter().filter(|slot| **slot < ordinal);
        below.all(|slot| self.may_be_available(*slot, spec))
    }

    /// Is some other pod being deleted, and the sender must know?
    pub fn waits_for_deletion(&self, but: i64) -> bool {
        let is_going = |object: &Object| self.is_ours(object) && object.is_going() && !object.gone;
        let mut others = self.pods.iter().filter(|pod| pod.ordinal != but);
        others.any(|pod| pod.must_be(is_going))
    }

    /// Is there a pod above an ordinal that is not wanted, and the sender must know?
    pub fn has_condemned_above(&self, spec: &Spec<'_>, ordinal: i64) -> bool {
        let is_there = |object: &Object| self.is_ours(object) && !object.gone;
        let mut above = self.pods.iter().filter(|pod| pod.ordinal > ordinal);
        above.any(|pod| spec.rank(pod.ordinal).is_none() && pod.must_be(is_there))
    }

    /// Slots, but for one, of whose pods something must be believed.
    pub fn least(&self, spec: &Spec<'_>, but: i64, believed: impl Fn(&Object) -> bool) -> i64 {
        let is_so = |object: &Object| self.is_ours(object) && !object.gone && believed(object);
        let others = self
            .pods
            .iter()
            .filter(|pod| pod.ordinal != but && spec.rank(pod.ordinal).is_some());
        others.filter(|pod| pod.must_be(is_so)).count() as i64
    }

    /// The first of some rules that no specification keeps together with those before it.
    pub fn broken(&self, rules: &[Rule<'_>]) -> Option<&'static str> {
        let mut left: Vec<&Spec<'_>> = self.specs.iter().collect();
        for (name, rule) in rules {
            left.retain(|spec| rule(spec));
            if left.is_empty() {
                return Some(name);
            }
        }
        None
    }

    /// The specifications that may have been believed.
    pub fn brief(&self) -> String {
        let all: Vec<String> = self.specs.iter().map(Spec::brief).collect();
        all.join(" or ")
    }
}

/// Owner reference of a kind, as its uid.
pub fn owner_of_kind<'v>(object: &'v Object, kind: &str) -> Option<&'v str> {
    let owners = object.value()["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.find(|one: &&Value| one["kind"] == kind)?["uid"].as_str()
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn only_names_that_a_set_gives_have_an_ordinal() {
        assert_eq!(ordinal("web-0"), Some(0));
        assert_eq!(ordinal("web-2000000000"), Some(2_000_000_000));
        for name in [
            "web-01",
            "web--1",
            "web-+1",
            "web-",
            "web",
            "web-2147483648",
            "web-1-2",
        ] {
            assert_eq!(ordinal(name), None, "{name}");
        }
    }
}
