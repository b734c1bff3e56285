//! *"`replicas` pods, and `maxSurge` more while something is replaced."* No pod is created for a place that is taken,
//! none twice, and none is deleted without a cause.

use kruise_sim::Method;

use super::{
    availability::brief,
    hooks,
    partition::too_many,
    spec::{Knowledge, Spec},
};
use crate::engine::oracles::{Mirror, Object, PODS, REVISIONS, Violation, Write};
use crate::subjects::labels::{REVISION, SPECIFIED, STATE};

/// Pod label: the place a pod takes.
const INSTANCE: &str = "apps.kruise.io/cloneset-instance-id";

/// Judges creations and deletions of pods.
pub fn judge(
    write: &Write<'_>,
    known: &Knowledge<'_>,
    mirror: &Mirror,
    rolls_back: bool,
) -> Option<Violation> {
    if write.resource != "pods" {
        return None;
    }
    match write.method {
        Method::Post => created(write, known, mirror),
        Method::Delete => deleted(write, known, mirror, rolls_back),
        Method::Patch if hooks::turn(write, mirror).is_some_and(|(_, to)| to == "PreparingDelete") => {
            deleted(write, known, mirror, rolls_back)
        }
        _ => None,
    }
}

fn created(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    let pods = mirror.of(PODS);
    let last = pods
        .changes
        .len()
        .checked_sub(1)
        .and_then(|at| pods.changes.get(at))?
        .version;
    let new = pods.now().find(|pod| pod.version == last)?;
    let id = new.label(INSTANCE);
    let twin = pods.now().find(|pod| {
        pod.uid != new.uid && pod.is_active() && pod.owner() == new.owner() && pod.label(INSTANCE) == id
    });
    if let Some(twin) = twin {
        let what = format!(
            "{} created {} beside {}, both of instance {id}",
            write.process, new.name, twin.name
        );
        return Some(Violation {
            oracle: "one pod for one place",
            what,
        });
    }
    // Those it must know of count: a pod that somebody else may have ended does not.
    let before = |spec: &Spec| known.least(|pod| spec.counts(pod));
    if known.allows(|spec| before(spec) < spec.replicas + spec.max_surge) {
        return None;
    }
    let before = known.least(Object::is_active);
    let what = format!(
        "{} created {} beside {before} active pods; specifications: {}",
        write.process,
        new.name,
        brief(known)
    );
    Some(Violation {
        oracle: "number of pods",
        what,
    })
}

fn deleted(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror, rolls_back: bool) -> Option<Violation> {
    let pod = known
        .pods
        .iter()
        .find(|pod| pod.name() == write.name && pod.may_be(|object| !object.is_going()))?;
    let specified = pod.may_be(|object| object.has_label(SPECIFIED));
    // There was a cause when a hook began to hold it, and what returns such a pod is judged by itself.
    let held =
        write.method == Method::Delete && pod.may_be(|object| object.label(STATE) == "PreparingDelete");
    let caused = |spec: &Spec| {
        specified
            || held
            || spec.pods_to_delete.iter().any(|name| name == write.name)
            || known.most(Object::is_active) > spec.replicas
            || replaces(spec, pod.truth(), mirror)
            || (rolls_back && spec.policy != "InPlaceOnly" && too_many(spec, known, mirror))
    };
    if known.allows(caused) {
        return None;
    }
    let what = format!(
        "{} deleted {} for no reason; specifications: {}",
        write.process,
        write.name,
        brief(known)
    );
    Some(Violation {
        oracle: "deletion has a cause",
        what,
    })
}

/// Is the pod on an old revision, and replaced to be updated?
fn replaces(spec: &Spec, pod: &Object, mirror: &Mirror) -> bool {
    let revision = mirror.of(REVISIONS).named(pod.label(REVISION));
    let is_old = revision.is_none_or(|revision| !spec.is_revision(revision));
    is_old && spec.updates() && spec.policy != "InPlaceOnly" && spec.partition < spec.replicas
}
