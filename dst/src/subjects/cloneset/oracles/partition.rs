//! *"`partition` pods stay on old revisions."* A pod is moved to the update revision, or created on it, only while fewer
//! than `replicas − partition` are there.

use kruise_sim::Method;

use super::{
    availability::brief,
    spec::{Knowledge, Spec},
};
use crate::engine::oracles::{Mirror, Object, PODS, REVISIONS, Violation, Write};
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::labels::REVISION;

/// Judges writes that give a pod a revision.
pub fn judge(
    write: &Write<'_>,
    known: &Knowledge<'_>,
    mirror: &Mirror,
    rolls_back: bool,
) -> Option<Violation> {
    if write.resource != "pods" || write.method == Method::Delete {
        return None;
    }
    let pods = mirror.of(PODS);
    let change = pods.changes.get(write.marks.of(PODS))?;
    let after = pods.now().find(|pod| pod.version == change.version)?;
    let versions = pods.objects.get(&after.uid)?;
    let before = versions.iter().rev().nth(1);
    let to = after.label(REVISION);
    if before.is_some_and(|before| before.label(REVISION) == to) {
        return None;
    }
    let target = mirror.of(REVISIONS).named(to)?;
    let moved = before.is_some_and(|before| !before.label(REVISION).is_empty());
    if moved && let Some(oracle) = held(known, mirror, target, rolls_back) {
        let what = format!(
            "{} moved {} to {to}; specifications: {}",
            write.process,
            after.name,
            brief(known)
        );
        return Some(Violation { oracle, what });
    }
    let is_on_target = |object: &Object| object.is_active() && object.label(REVISION) == to;
    let is_on_other = |object: &Object| object.is_active() && object.label(REVISION) != to;
    let there = known.least(is_on_target);
    // Surge pods come on top: what matters then is that enough stay behind. A set without old pods has none to keep.
    let others = known.most(is_on_other) - i64::from(write.method != Method::Post);
    let fits = |spec: &Spec| {
        let surge = if write.method == Method::Post {
            spec.max_surge
        } else {
            0
        };
        !spec.is_revision(target)
            || others >= spec.partition
            || there < spec.replicas - spec.partition + surge
            || (write.method == Method::Post && others == 0)
    };
    if known.allows(fits) || (write.method == Method::Post && known.allows(|spec| is_first(spec, mirror))) {
        return None;
    }
    let what = format!(
        "{} brought {} to {to}, where {there} pods are already; specifications: {}",
        write.process,
        after.name,
        brief(known)
    );
    Some(Violation {
        oracle: "partition",
        what,
    })
}

/// Why no pod may be moved to a revision: updates are held, or it is not the update revision. With the gate, pods are
/// brought back while there are more on the update revision than the partition allows.
fn held(known: &Knowledge<'_>, mirror: &Mirror, target: &Object, rolls_back: bool) -> Option<&'static str> {
    if !known.allows(Spec::updates) {
        return Some("no updates while they are held");
    }
    let forward = known.allows(|spec| spec.updates() && spec.is_revision(target));
    let fits = forward || (rolls_back && known.allows(|spec| too_many(spec, known, mirror)));
    (!fits).then_some("pods go to the update revision")
}

/// May there be more pods on the update revision than the partition allows?
pub fn too_many(spec: &Spec, known: &Knowledge<'_>, mirror: &Mirror) -> bool {
    spec.updates() && known.most(spec.is_updated(mirror)) > spec.replicas - spec.partition
}

/// Is there but one revision, or is the one of the template current already?
fn is_first(spec: &Spec, mirror: &Mirror) -> bool {
    let current = mirror
        .of(CLONESETS)
        .now()
        .next()
        .map(|set| set.value()["status"]["currentRevision"].clone());
    let current = current
        .as_ref()
        .and_then(|name| name.as_str())
        .and_then(|name| mirror.of(REVISIONS).named(name));
    current.is_none_or(|current| spec.is_revision(current))
}
