//! What the sender of a write for a StatefulSet may have believed.

use super::super::start::STATEFULSETS;
use super::spec::{Gates, Spec};
use crate::rules::belief::{self, Seen, Wrote};
use crate::rules::prelude::*;

/// A pod as the sender may have seen it.
pub struct Pod<'a> {
    /// Its versions.
    pub seen: Seen<'a>,
    /// Its ordinal.
    pub ordinal: i64,
}

/// What the sender of a write may have believed of a StatefulSet.
pub struct Known<'a> {
    /// Uid of the StatefulSet.
    pub uid: Arc<str>,
    /// Its specifications, each of which may have been taken for the newest; those of one that is being deleted demand
    /// nothing.
    pub specs: Vec<Spec<'a>>,
    /// Pods that may be its own.
    pods: Vec<Pod<'a>>,
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

impl<'a> Known<'a> {
    /// What the sender may have believed of the StatefulSet with this uid.
    pub fn of(write: &Write<'_>, mirror: &'a Mirror, uid: &str, gates: Gates, wrote: &Wrote) -> Self {
        let versions = write.sees(mirror, STATEFULSETS, uid).versions.iter();
        let is_ours = |object: &Object| object.owner() == uid && is_selected(object);
        let pods = belief::pods(write, mirror, wrote).filter(|seen| seen.may_be(is_ours));
        let pods = pods.filter_map(|seen| {
            Some(Pod {
                seen,
                ordinal: ordinal(seen.name())?,
            })
        });
        Self {
            uid: uid.into(),
            specs: belief::specs(versions.filter(|version| !version.is_going()), |set| {
                Spec::of(set, gates)
            }),
            pods: pods.collect(),
            now: write.now,
        }
    }

    /// The pod that a write is about, if it may still be there. An earlier pod of its name may be known, too.
    pub fn pod(&self, written: &Object) -> Option<&Pod<'a>> {
        let mut pods = self.pods.iter();
        let is_it = |object: &Object| object.uid == written.uid && !object.is_going();
        pods.find(|pod| pod.seen.may_be(is_it))
    }

    fn is_ours(&self, pod: &Object) -> bool {
        pod.owner() == &*self.uid && is_selected(pod)
    }

    /// May the pod of a slot be available?
    fn may_be_available(&self, slot: i64, spec: &Spec<'_>) -> bool {
        let is_available =
            |object: &Object| self.is_ours(object) && object.is_available(spec.min_ready_seconds, self.now);
        let mut pods = self.pods.iter();
        pods.any(|pod| pod.ordinal == slot && pod.seen.may_be(is_available))
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
        others.any(|pod| pod.seen.must_be(is_going))
    }

    /// Is there a pod above an ordinal that is not wanted, and the sender must know?
    pub fn has_condemned_above(&self, spec: &Spec<'_>, ordinal: i64) -> bool {
        let is_there = |object: &Object| self.is_ours(object) && !object.gone;
        let mut above = self.pods.iter().filter(|pod| pod.ordinal > ordinal);
        above.any(|pod| spec.rank(pod.ordinal).is_none() && pod.seen.must_be(is_there))
    }

    /// Slots, but for one, of whose pods something must be believed.
    pub fn least(&self, spec: &Spec<'_>, but: i64, believed: impl Fn(&Object) -> bool) -> i64 {
        let is_so = |object: &Object| self.is_ours(object) && !object.gone && believed(object);
        let others = self
            .pods
            .iter()
            .filter(|pod| pod.ordinal != but && spec.rank(pod.ordinal).is_some());
        others.filter(|pod| pod.seen.must_be(is_so)).count() as i64
    }

    /// The specifications that may have been believed.
    pub fn brief(&self) -> String {
        let all: Vec<String> = self.specs.iter().map(Spec::brief).collect();
        all.join(" or ")
    }
}

/// Owner reference of a kind, as its uid.
pub fn owner_of_kind<'v>(object: &'v Object, kind: &str) -> Option<&'v str> {
    let mut owners = items(&object.metadata()["ownerReferences"]);
    owners.find(|one: &&Value| one["kind"] == kind)?["uid"].as_str()
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn only_names_that_a_set_gives_have_an_ordinal() {
        assert_eq!(ordinal("web-0"), Some(0));
        assert_eq!(ordinal("web-2000000000"), Some(2_000_000_000));
        for end in ["01", "-1", "+1", "", "2147483648", "1-2"] {
            assert_eq!(ordinal(&format!("web-{end}")), None, "{end}");
        }
    }
}
