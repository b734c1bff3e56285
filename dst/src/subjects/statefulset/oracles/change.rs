//! *"A pod is deleted or updated for a reason; updates leave the partition alone; in an ordered set one pod goes
//! after the other, those that are not wanted first; and no more pods are unavailable than may be."*

use super::claims::may_be_growing;
use super::known::{Known, Pod};
use super::spec::{Spec, revision};
use crate::rules::pod_writes::claims::mounts;
use crate::rules::prelude::*;

/// A pod of an ended phase is at least so many seconds old when it is deleted.
const ENDED: i64 = 10;

/// What a write does to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Deletes it, or has a hook hold it before that.
    Removes,
    /// Updates it in place, or has a hook hold it before that.
    Updates,
}

/// A pod, and the write to it.
struct Case<'a> {
    act: Act,
    /// It brings the pod to another revision.
    moves: bool,
    before: &'a Object,
    pod: &'a Pod<'a>,
    known: &'a Known<'a>,
    write: &'a Write<'a>,
    mirror: &'a Mirror,
}

/// Judges a write to a pod of the StatefulSet.
pub fn judge(
    write: &Write<'_>,
    [before, after]: [&Object; 2],
    known: &Known<'_>,
    mirror: &Mirror,
) -> Option<Violation> {
    let act = act(write, before, after)?;
    // One that a hook held had its reason then.
    if write.method == Method::Delete && before.label(STATE) == "PreparingDelete" {
        return None;
    }
    let pod = known.pod(before)?;
    let moves = act == Act::Updates && before.label(REVISION) != after.label(REVISION);
    let case = Case {
        act,
        moves,
        before,
        pod,
        known,
        write,
        mirror,
    };
    let target = revision(mirror, after.label(REVISION));
    let oracle = kept_by!(&known.specs, |spec|
        "a reason for each change": case.has_reason(spec);
        "pods go to the update revision": !moves || target.is_some_and(|target| spec.is_revision(target));
        "partition": case.is_due(spec) || case.goes_on() || case.is_in_window(spec);
        "one after the other": case.is_in_order(spec);
        "availability": case.is_affordable(spec);
    )?;
    let why = format!("{act:?}, {}; {}", before.label(STATE), known.brief());
    write.breaks(oracle, why)
}

fn act(write: &Write<'_>, before: &Object, after: &Object) -> Option<Act> {
    let turns = |state: &str| before.label(STATE) != state && after.label(STATE) == state;
    if write.method == Method::Delete {
        return (!before.is_going()).then_some(Act::Removes);
    }
    if turns("PreparingDelete") {
        return Some(Act::Removes);
    }
    let moves = !before.label(REVISION).is_empty() && before.label(REVISION) != after.label(REVISION);
    let leaves = before.state(GATE) == "True" && after.state(GATE) == "False";
    let updates = turns("PreparingUpdate") || moves || leaves || before.images() != after.images();
    updates.then_some(Act::Updates)
}

impl Case<'_> {
    /// Is there a reason for it that no update is?
    fn is_due(&self, spec: &Spec<'_>) -> bool {
        self.act == Act::Removes
            && (spec.rank(self.pod.ordinal).is_none()
                || self.ended()
                || (spec.updates() && self.pod.seen.may_be(|pod| pod.has_label(SPECIFIED))))
    }

    /// Is it the second half of an update in place that began before?
    fn goes_on(&self) -> bool {
        self.act == Act::Updates && !self.moves && is_under_way(self.before)
    }

    fn has_reason(&self, spec: &Spec<'_>) -> bool {
        let policy = match self.act {
            Act::Removes => spec.policy != "InPlaceOnly",
            Act::Updates => spec.policy != "ReCreate",
        };
        let update = spec.update_revision(self.mirror);
        let is_old = self.pod.seen.may_be(|pod| pod.label(REVISION) != update);
        let lacks_volume = self.act == Act::Removes && self.pod.seen.may_be(|pod| lacks_volume(pod, spec));
        self.is_due(spec) || self.goes_on() || (spec.updates() && policy && (is_old || lacks_volume))
    }

    /// May it be believed to have failed, and is it old enough to be replaced?
    fn ended(&self) -> bool {
        let age = self.write.now.as_second() - self.before.created().as_second();
        self.pod.seen.may_be(|pod| pod.end().is_some()) && age >= ENDED
    }

    /// Is it one of those that are updated?
    fn is_in_window(&self, spec: &Spec<'_>) -> bool {
        let Some(rank) = spec.rank(self.pod.ordinal) else {
            return true;
        };
        if !spec.unordered {
            return rank >= spec.partition;
        }
        let update = spec.update_revision(self.mirror);
        let updated = |pod: &Object| pod.is_going() || pod.label(REVISION) == update;
        let is_updated = self.pod.seen.may_be(updated);
        // One whose deletion is asked for comes back as the partition says, and takes no other's turn.
        let takes_turn = |pod: &Object| updated(pod) && !(pod.is_going() && pod.has_label(SPECIFIED));
        is_updated || self.known.least(spec, self.pod.ordinal, takes_turn) < spec.replicas - spec.partition
    }

    fn is_in_order(&self, spec: &Spec<'_>) -> bool {
        let number = self.pod.ordinal;
        if !spec.ordered || is_waiting(self.before) || (self.act == Act::Updates && is_under_way(self.before))
        {
            return true;
        }
        let known = self.known;
        if spec.rank(number).is_none() {
            return known.are_available_below(spec, i64::MAX)
                && !known.waits_for_deletion(number)
                && !known.has_condemned_above(spec, number);
        }
        // The lowest pod that is out of service is what all others wait for. Changing in place, it may come back
        // sooner.
        let may_go = self.is_due(spec) || self.act == Act::Updates;
        if may_go && self.may_be_out_of_service(spec) && known.are_available_below(spec, number) {
            return true;
        }
        known.are_available_below(spec, i64::MAX)
            && !known.waits_for_deletion(number)
            && !known.has_condemned_above(spec, -1)
    }

    fn may_be_out_of_service(&self, spec: &Spec<'_>) -> bool {
        let serves = |pod: &Object| pod.is_certainly_available(spec.min_ready_seconds, self.write.decided);
        self.pod.seen.may_be(|pod| !serves(pod))
    }

    fn is_affordable(&self, spec: &Spec<'_>) -> bool {
        let number = self.pod.ordinal;
        spec.rank(number).is_none()
            || self.may_be_out_of_service(spec)
            || (spec.resizes && may_be_growing(self.before, self.write, self.mirror))
            || self.known.unavailable(spec, number) < spec.max_unavailable
    }
}

/// Does a hook hold it, or has it to come back?
fn is_waiting(pod: &Object) -> bool {
    ["PreparingUpdate", "PreparingDelete", "Updated"].contains(&pod.label(STATE))
}

/// Is it being updated in place?
fn is_under_way(pod: &Object) -> bool {
    matches!(pod.label(STATE), "PreparingUpdate" | "Updating" | "Updated") || pod.state(GATE) == "False"
}

/// Was it made without a volume for some claim template?
fn lacks_volume(pod: &Object, spec: &Spec<'_>) -> bool {
    let mounted: Vec<&str> = mounts(pod).collect();
    let names = spec.claims.iter().map(|claim| text(&claim["metadata"]["name"]));
    let mut wanted = names.map(|name| format!("{name}-{}", pod.name));
    wanted.any(|claim| !mounted.contains(&claim.as_str()))
}
