//! *"Claims are created for slots, never deleted, and owned by whose end is to be theirs: by the StatefulSet, or by
//! a pod that is scaled away, and never by one whose ordinal is wanted. They only grow, and only with pods that are
//! updated."*

use super::super::start::{CLAIM, CLASSES};
use super::known::{Known, ordinal, owner_of_kind};
use super::spec::Spec;
use crate::rules::pod_writes::claims::mounts;
use crate::rules::prelude::*;

/// Judges a write to a claim. `known` is of each StatefulSet that was ever there.
pub fn judge(write: &Write<'_>, known: &[Known<'_>], mirror: &Mirror) -> Option<Violation> {
    if write.resource != "persistentvolumeclaims" {
        return None;
    }
    let brief = || known.iter().map(Known::brief).collect::<Vec<_>>().join(" or ");
    never!(write, "claims are not deleted", write.method == Method::Delete => "{}", brief());
    let change = write.change(mirror, CLAIMS)?;
    let (after, before) = (
        change.after,
        change.before().filter(|_| write.method != Method::Post),
    );
    let ordinal = after.name.strip_prefix(&format!("{CLAIM}-")).and_then(ordinal);
    never!(write, "claims have their names", ordinal.is_none() => "no pod of the StatefulSet uses it");
    let number = ordinal?;
    let is_new = before.is_none();
    let owners = |claim: &Object| claim.metadata()["ownerReferences"].clone();
    let is_owned_anew = before.is_none_or(|before| owners(before) != owners(after));
    let grows = before.is_some_and(|before| requests(before) != requests(after));
    never!(write, "claims only grow",
        grows && requests(after) < before.and_then(requests) => "it is to shrink; {}", brief());
    let of = known.iter().map(|known| {
        kept_by!(&known.specs, |spec|
            "claims of slots": !is_new || spec.rank(number).is_some();
            "claims are owned as their policy says": !is_owned_anew || is_owned(after, number, known, spec, mirror);
            "claims grow with their pods": !grows || may_grow(after, number, spec);
        )
    });
    let broken: Option<Vec<&'static str>> = of.collect();
    let oracle = broken?.into_iter().next_back()?;
    write.breaks(oracle, format!("{}; {}", owners(after), brief()))
}

/// Judges a change of a claim when it is sent: the server refuses a claim of a class that does not expand.
pub fn judge_sent(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "persistentvolumeclaims" || write.body["spec"]["resources"].is_null() {
        return None;
    }
    let mut classes = write.sees_all(mirror, CLASSES);
    let expands = classes.any(|seen| seen.may_be(|class| class.value()["allowVolumeExpansion"] == true));
    never!(write, "claims grow where their class allows it", !expands => "its class does not");
    None
}

/// Judges the deletion of a pod that is not wanted any more: its claims must go with it, if they are to.
pub fn judge_deletion(
    write: &Write<'_>,
    pod: &Object,
    known: &Known<'_>,
    mirror: &Mirror,
) -> Option<Violation> {
    if write.method != Method::Delete || known.specs.is_empty() {
        return None;
    }
    let number = ordinal(&pod.name)?;
    let go = |spec: &Spec<'_>| spec.rank(number).is_none() && spec.deletes_scaled;
    if !known.specs.iter().all(go) {
        return None;
    }
    let claims = mirror.of(CLAIMS);
    let mut left = mounts(pod).filter_map(|name| claims.named(name));
    never!(write, "claims go with pods that are scaled away",
        some left in left.find(|claim| !claim.is_going() && owner_of_kind(claim, "Pod") != Some(&*pod.uid))
            => "{} stays", left.name);
    None
}

fn is_owned(claim: &Object, number: i64, known: &Known<'_>, spec: &Spec<'_>, mirror: &Mirror) -> bool {
    let is_wanted = spec.rank(number).is_some();
    let goes_with_pod = !is_wanted && spec.deletes_scaled;
    let goes_with_set = spec.deletes_all && !goes_with_pod;
    let mut owners = items(&claim.metadata()["ownerReferences"]);
    let of_set = owners.any(|one| one["uid"] == *known.uid);
    let pod = owner_of_kind(claim, "Pod");
    let controlled = !claim.owner().is_empty();
    let is_its_pod = |uid: &str| {
        mirror
            .last(PODS, uid)
            .is_some_and(|pod| ordinal(&pod.name) == Some(number))
    };
    !controlled && of_set == goes_with_set && pod.is_some() == goes_with_pod && pod.is_none_or(is_its_pod)
}

fn may_grow(claim: &Object, number: i64, spec: &Spec<'_>) -> bool {
    let wanted = spec.claims.first().map(|template| gibibytes(&template["spec"]));
    let in_window = spec.unordered || spec.rank(number).is_some_and(|rank| rank >= spec.partition);
    spec.resizes && spec.updates() && in_window && wanted == Some(requests(claim))
}

/// How much a claim asks for.
pub fn requests(claim: &Object) -> Option<i64> {
    gibibytes(claim.spec())
}

/// `resources.requests.storage` of scenarios: so many `Gi`.
pub fn gibibytes(spec: &Value) -> Option<i64> {
    let text = spec["resources"]["requests"]["storage"].as_str()?;
    text.strip_suffix("Gi")?.parse().ok()
}

/// What a claim has got.
pub fn capacity(claim: &Object) -> Option<i64> {
    let text = claim.status()["capacity"]["storage"].as_str()?;
    text.strip_suffix("Gi")?.parse().ok()
}

/// May a claim of a pod be believed to have less than it asks for? Such a pod counts as unavailable where claims grow.
pub fn may_be_growing(pod: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let seen: Vec<_> = write.sees_all(mirror, CLAIMS).collect();
    let may_grow = |name| {
        let mut claims = seen.iter().filter(|seen| seen.name() == name);
        claims.any(|seen| seen.may_be(|claim| capacity(claim) < requests(claim)))
    };
    mounts(pod).any(may_grow)
}
