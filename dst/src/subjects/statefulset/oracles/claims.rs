//! *"Claims are created for slots, never deleted, and owned by whose end is to be theirs: by the StatefulSet, or by a pod that
//! is scaled away, and never by one whose ordinal is wanted. They only grow, and only with pods that are updated."*

use kruise_sim::Method;
use serde_json::Value;

use super::known::{Known, ordinal, owner_of_kind};
use super::spec::Spec;
use crate::engine::oracles::{CLAIMS, Mirror, Object, PODS, Violation, Write};
use crate::subjects::pod_writes::claims::mounts;
use crate::subjects::statefulset::start::{CLAIM, CLASSES};

/// Judges a write to a claim. `known` is of each StatefulSet that was ever there.
pub fn judge(write: &Write<'_>, known: &[Known<'_>], mirror: &Mirror) -> Option<Violation> {
    if write.resource != "persistentvolumeclaims" {
        return None;
    }
    let violation = |oracle, name: &str, what: &str| {
        let known: Vec<String> = known.iter().map(Known::brief).collect();
        let what = format!(
            "{} {:?} {name}: {what}; {}",
            write.process,
            write.method,
            known.join(" or ")
        );
        Some(Violation { oracle, what })
    };
    if write.method == Method::Delete {
        return violation(
            "claims are not deleted",
            write.name,
            "it is not for the manager to delete it",
        );
    }
    let versions = mirror.of(CLAIMS).changed_at(write.marks.of(CLAIMS))?;
    let (after, before) = match versions {
        [.., before, after] if write.method != Method::Post => (after, Some(before)),
        [.., after] => (after, None),
        [] => return None,
    };
    let name = &*after.name;
    let prefix = format!("{CLAIM}-");
    let Some(number) = name.strip_prefix(&*prefix).and_then(ordinal) else {
        return violation(
            "claims have their names",
            name,
            "no pod of the StatefulSet uses it",
        );
    };
    let is_new = before.is_none();
    let is_owned_anew = before.is_none_or(|before| {
        before.value()["metadata"]["ownerReferences"] != after.value()["metadata"]["ownerReferences"]
    });
    let grows = before.is_some_and(|before| requests(before) != requests(after));
    if grows && requests(after) < before.and_then(|before| requests(before)) {
        return violation("claims only grow", name, "it is to shrink");
    }
    let size = |spec: &Spec<'_>| !grows || may_grow(after, number, spec);
    let of = known.iter().map(|known| {
        known.broken(&[
            ("claims of slots", &|spec| !is_new || spec.rank(number).is_some()),
            ("claims are owned as their policy says", &|spec| {
                !is_owned_anew || is_owned(after, number, known, spec, mirror)
            }),
            ("claims grow with their pods", &size),
        ])
    });
    let broken: Option<Vec<&'static str>> = of.collect();
    let oracle = broken?.into_iter().next_back()?;
    violation(
        oracle,
        name,
        &after.value()["metadata"]["ownerReferences"].to_string(),
    )
}

/// Judges a change of a claim when it is sent: the server refuses a claim of a class that does not expand.
pub fn judge_sent(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "persistentvolumeclaims" || write.body["spec"]["resources"].is_null() {
        return None;
    }
    let classes = mirror.of(CLASSES);
    let floor = write.sent.floors.of(CLASSES);
    let mut seen = classes.objects.keys().flat_map(|uid| classes.window(uid, floor));
    let expands = seen.any(|class| class.value()["allowVolumeExpansion"] == true);
    let what = format!(
        "{} lets claim {} grow, and its class does not",
        write.process, write.name
    );
    (!expands).then_some(Violation {
        oracle: "claims grow where their class allows it",
        what,
    })
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
    let left = left.find(|claim| !claim.is_going() && owner_of_kind(claim, "Pod") != Some(&*pod.uid))?;
    Some(Violation {
        oracle: "claims go with pods that are scaled away",
        what: format!("{} deleted {}, and {} stays", write.process, pod.name, left.name),
    })
}

fn is_owned(claim: &Object, number: i64, known: &Known<'_>, spec: &Spec<'_>, mirror: &Mirror) -> bool {
    let is_wanted = spec.rank(number).is_some();
    let goes_with_pod = !is_wanted && spec.deletes_scaled;
    let goes_with_set = spec.deletes_all && !goes_with_pod;
    let owners = claim.value()["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    let of_set = owners.any(|one| one["uid"] == *known.uid);
    let pod = owner_of_kind(claim, "Pod");
    let controlled = !claim.owner().is_empty();
    let is_its_pod = |uid: &str| {
        let versions = mirror.of(PODS).objects.get(uid);
        let last = versions.and_then(|versions| versions.last());
        last.is_some_and(|pod| ordinal(&pod.name) == Some(number))
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
    gibibytes(&claim.value()["spec"])
}

/// `resources.requests.storage` of scenarios: so many `Gi`.
pub fn gibibytes(spec: &Value) -> Option<i64> {
    let text = spec["resources"]["requests"]["storage"].as_str()?;
    text.strip_suffix("Gi")?.parse().ok()
}

/// What a claim has got.
pub fn capacity(claim: &Object) -> Option<i64> {
    let text = claim.value()["status"]["capacity"]["storage"].as_str()?;
    text.strip_suffix("Gi")?.parse().ok()
}

/// May a claim of a pod be believed to have less than it asks for? Such a pod counts as unavailable where claims grow.
pub fn may_be_growing(pod: &Object, write: &Write<'_>, mirror: &Mirror) -> bool {
    let claims = mirror.of(CLAIMS);
    let floor = write.sent.floors.of(CLAIMS);
    let mut names = mounts(pod);
    names.any(|name| {
        let mut all = claims.objects.iter();
        all.any(|(uid, versions)| {
            let is_it = versions.first().is_some_and(|object| &*object.name == name);
            let mut seen = claims.window(uid, floor).iter();
            is_it && seen.any(|claim| capacity(claim) < requests(claim))
        })
    })
}
