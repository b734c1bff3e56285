//! *"One pod for each slot, named after it, on the revision that the partition says; in an ordered set only when
//! all before it are available, otherwise within the limit for scaling; and never before its claims."*

use super::known::{Known, ordinal};
use super::spec::{Spec, revision};
use crate::rules::pod_writes::claims::mounts;
use crate::rules::prelude::*;

/// Judges the creation of a pod.
pub fn judge(write: &Write<'_>, new: &Object, known: &Known<'_>, mirror: &Mirror) -> Option<Violation> {
    let number = ordinal(&new.name).filter(|number| is_identified(new, *number));
    never!(write, "a pod has its identity", number.is_none() => "name, labels and host name differ");
    let number = number?;
    never!(write, "claims before their pod",
        some claim in mounts(new).find(|claim| !is_there(claim, write, mirror))
            => "there is no claim {claim}");
    never!(write, "stale claims are waited for",
        some claim in mounts(new).find(|claim| is_stale(claim, new, write, mirror))
            => "claim {claim} goes with another pod");
    let waits = |pod: &Object, spec: &Spec<'_>| {
        pod.is_active() && !pod.is_available(spec.min_ready_seconds, write.now)
    };
    let waiting = |spec: &Spec<'_>| known.least(spec, number, |pod| waits(pod, spec));
    // Whatever becomes of higher ones: in an ordered set it is the lowest that is out of service, and comes first.
    let oracle = kept_by!(&known.specs, |spec|
        "one pod for each slot": spec.rank(number).is_some();
        "revisions of new pods": has_revision(new, number, spec, known, (write, mirror));
        "one after the other": !spec.ordered || known.are_available_below(spec, number);
        "budget of scaling": spec.ordered || spec.budget.is_none_or(|budget| waiting(spec) < budget);
    )?;
    write.breaks(oracle, format!("on {}; {}", new.label(REVISION), known.brief()))
}

fn is_identified(pod: &Object, number: i64) -> bool {
    pod.label("statefulset.kubernetes.io/pod-name") == &*pod.name
        && pod.label("apps.kubernetes.io/pod-index") == number.to_string()
        && pod.spec()["hostname"] == *pod.name
        && pod.spec()["subdomain"] == "web"
}

/// Was there a claim when the sender decided, or may it have believed so?
fn is_there(claim: &str, write: &Write<'_>, mirror: &Mirror) -> bool {
    let floor = write.sent.floors.of(CLAIMS);
    let mut all = mirror.of(CLAIMS).objects.values();
    all.any(|versions| {
        versions.last().is_some_and(|last| {
            let is_known = last.version <= floor && last.at < write.decided;
            &*last.name == claim && !(last.gone && is_known)
        })
    })
}

/// Must the sender know that a claim goes with a pod that was there before?
fn is_stale(claim: &str, pod: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let mut named = write.sees_all(mirror, CLAIMS).filter(|seen| seen.name() == claim);
    let is_of_another = |object: &Object| {
        let mut owners = items(&object.metadata()["ownerReferences"]);
        owners.any(|one| one["kind"] == "Pod" && one["name"] == *pod.name && one["uid"] != *pod.uid)
    };
    // One that was made since is another one.
    named.all(|seen| !seen.may_be(|object| !object.gone && !is_of_another(object)))
}

/// Is it the revision that a new pod of this ordinal gets?
fn has_revision(
    new: &Object,
    number: i64,
    spec: &Spec<'_>,
    known: &Known<'_>,
    (write, mirror): (&Write<'_>, &Mirror),
) -> bool {
    let label = new.label(REVISION);
    let is_update = revision(mirror, label).is_some_and(|revision| spec.is_revision(revision));
    let update = spec.update_revision(mirror);
    let stays_old = !spec.on_delete
        && if spec.unordered {
            // Others that are old, whatever is believed of them, and those that may be.
            let updated = known.least(spec, number, |pod| pod.label(REVISION) == update);
            let old = known.least(spec, number, |pod| pod.label(REVISION) != update);
            let others = spec.slots.len() as i64 - 1;
            if others - updated >= spec.partition && old < spec.partition {
                return is_update || label == spec.current;
            }
            old < spec.partition
        } else {
            spec.rank(number).is_some_and(|rank| rank < spec.partition)
        };
    let is_current = label == spec.current;
    if !stays_old {
        is_update
    } else if mirror.of(REVISIONS).named(spec.current).is_some() {
        is_current
    } else {
        is_update || (is_current && may_be_kept(label, write, mirror))
    }
}

/// May the sender have believed that a revision is still there? It goes with its StatefulSet.
fn may_be_kept(name: &str, write: &Write<'_>, mirror: &Mirror) -> bool {
    let mut all = write.sees_all(mirror, REVISIONS);
    all.any(|seen| seen.may_be(|version| &*version.name == name && !version.gone))
}
