//! *"`partition` pods stay on old revisions."* A pod is moved to the update revision, or created on it, only while
//! fewer than `replicas − partition` are there.

use super::super::draft::CLONESETS;
use super::availability::brief;
use super::spec::{Knowledge, Spec};
use crate::rules::prelude::*;

/// Judges writes that give a pod a revision.
pub fn judge(
    write: &Write<'_>,
    known: &Knowledge<'_>,
    mirror: &Mirror,
    rolls_back: bool,
) -> Option<Violation> {
    let change = write
        .change(mirror, PODS)
        .filter(|_| write.method != Method::Delete)?;
    let (before, after) = (change.before(), change.after);
    let to = after.label(REVISION);
    if before.is_some_and(|before| before.label(REVISION) == to) {
        return None;
    }
    let target = mirror.of(REVISIONS).named(to)?;
    let moved = before.is_some_and(|before| !before.label(REVISION).is_empty());
    if moved {
        let forward = known.allows(|spec| spec.updates() && spec.is_revision(target));
        let back = rolls_back && known.allows(|spec| too_many(spec, known, mirror));
        never!(write, "no updates while they are held", !known.allows(Spec::updates) => "{}", brief(known));
        never!(write, "pods go to the update revision", !forward && !back => "{to}; specifications: {}", brief(known));
    }
    let is_on_target = |object: &Object| object.is_active() && object.label(REVISION) == to;
    let is_on_other = |object: &Object| object.is_active() && object.label(REVISION) != to;
    let there = known.least(is_on_target);
    // Surge pods come on top: what matters then is that enough stay behind. A set without old pods has none to keep.
    let is_new = write.method == Method::Post;
    let others = known.most(is_on_other) - i64::from(!is_new);
    let fits = |spec: &Spec| {
        let surge = if is_new { spec.max_surge } else { 0 };
        !spec.is_revision(target)
            || others >= spec.partition
            || there < spec.replicas - spec.partition + surge
            || (is_new && (others == 0 || is_first(spec, mirror)))
    };
    never!(write, "partition",
        !known.allows(fits) => "{there} pods are on {to} already; specifications: {}", brief(known));
    None
}

/// May there be more pods on the update revision than the partition allows?
pub fn too_many(spec: &Spec, known: &Knowledge<'_>, mirror: &Mirror) -> bool {
    spec.updates() && known.most(spec.is_updated(mirror)) > spec.replicas - spec.partition
}

/// Is there but one revision, or is the one of the template current already?
fn is_first(spec: &Spec, mirror: &Mirror) -> bool {
    let set = mirror.only(CLONESETS);
    let current = set.and_then(|set| mirror.of(REVISIONS).named(text(&set.status()["currentRevision"])));
    current.is_none_or(|current| spec.is_revision(current))
}
