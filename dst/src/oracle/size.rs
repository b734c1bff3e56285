//! *"`replicas` pods, and `maxSurge` more while something is replaced."* No pod is created for a place that is taken,
//! none twice, and none is deleted without a cause.

use kruise_sim::Method;

use super::{Knowledge, Spec, Violation, Write, availability::brief};
use crate::{history::Watched, mirror::Mirror, object::Object};

/// Pod label: the place a pod takes.
const INSTANCE: &str = "apps.kruise.io/cloneset-instance-id";
/// Pod label: it must go.
const SPECIFIED: &str = "apps.kruise.io/specified-delete";
/// Pod label: its revision.
pub const REVISION: &str = "controller-revision-hash";

/// Judges creations and deletions of pods.
pub fn judge(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" || !write.subresource.is_empty() {
        return None;
    }
    match write.method {
        Method::Post => created(write, known, mirror),
        Method::Delete => deleted(write, known, mirror),
        _ => None,
    }
}

fn created(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    let pods = mirror.of(Watched::Pods);
    let last = pods
        .log
        .len()
        .checked_sub(1)
        .and_then(|at| pods.log.get(at))?
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
    let before = known.least(Object::is_active);
    if known.allows(|spec| before < spec.replicas + spec.max_surge) {
        return None;
    }
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

fn deleted(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    let pod = known
        .pods
        .iter()
        .find(|pod| pod.name() == write.name && pod.may_be(|object| !object.is_going()))?;
    let specified = pod.may_be(|object| object.has_label(SPECIFIED));
    let caused = |spec: &Spec| {
        specified
            || spec.pods_to_delete.iter().any(|name| name == write.name)
            || known.most(Object::is_active) > spec.replicas
            || replaces(spec, pod.truth(), mirror)
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
    let revision = mirror.of(Watched::Revisions).named(pod.label(REVISION));
    let is_old = revision.is_none_or(|revision| !spec.is_revision(revision));
    is_old && !spec.paused && spec.policy != "InPlaceOnly" && spec.partition < spec.replicas
}
