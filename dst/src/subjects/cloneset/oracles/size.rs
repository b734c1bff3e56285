//! *"`replicas` pods, and `maxSurge` more while something is replaced."* No pod is created for a place that is taken,
//! none twice, and none is deleted without a cause.

use super::availability::brief;
use super::hooks;
use super::partition::too_many;
use super::spec::{Knowledge, Spec};
use crate::rules::lifecycle::HELD;
use crate::rules::prelude::*;

/// Pod label: the place a pod takes.
const INSTANCE: &str = "apps.kruise.io/cloneset-instance-id";

/// Judges creations and deletions of pods.
pub fn judge(
    write: &Write<'_>,
    known: &Knowledge<'_>,
    mirror: &Mirror,
    rolls_back: bool,
) -> Option<Violation> {
    match write.method {
        Method::Post => created(write, known, mirror),
        Method::Delete => deleted(write, known, mirror, rolls_back),
        Method::Patch if hooks::turn(write, mirror).is_some_and(|(_, to)| to == HELD) => {
            deleted(write, known, mirror, rolls_back)
        }
        _ => None,
    }
}

fn created(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    let pods = mirror.of(PODS);
    let last = pods.changes.last()?.version;
    let new = pods.now().find(|pod| pod.version == last)?;
    let id = new.label(INSTANCE);
    let is_twin = |pod: &&Arc<Object>| {
        pod.uid != new.uid && pod.is_active() && pod.owner() == new.owner() && pod.label(INSTANCE) == id
    };
    never!(write, "one pod for one place",
        some twin in pods.now().find(is_twin) => "{} is of instance {id}, too", twin.name);
    // Those it must know of count: a pod that somebody else may have ended does not.
    let before = |spec: &Spec| known.least(|pod| spec.counts(pod));
    never!(write, "number of pods",
        !known.allows(|spec| before(spec) < spec.replicas + spec.max_surge)
            => "{} are active; specifications: {}", known.least(Object::is_active), brief(known));
    None
}

fn deleted(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror, rolls_back: bool) -> Option<Violation> {
    let mut pods = known.pods.iter();
    let pod = pods.find(|pod| pod.name() == write.name && pod.may_be(|object| !object.is_going()))?;
    let specified = pod.may_be(|object| object.has_label(SPECIFIED));
    // There was a cause when a hook began to hold it, and what returns such a pod is judged by itself.
    let held = write.method == Method::Delete && pod.may_be(|object| object.label(STATE) == HELD);
    let caused = |spec: &Spec| {
        specified
            || held
            || spec.names(write.name)
            || known.most(Object::is_active) > spec.replicas
            || replaces(spec, pod.truth(), mirror)
            || (rolls_back && spec.policy != "InPlaceOnly" && too_many(spec, known, mirror))
    };
    never!(write, "deletion has a cause", !known.allows(caused) => "specifications: {}", brief(known));
    None
}

/// Is the pod on an old revision, and replaced to be updated?
fn replaces(spec: &Spec, pod: &Object, mirror: &Mirror) -> bool {
    let revision = mirror.of(REVISIONS).named(pod.label(REVISION));
    let is_old = revision.is_none_or(|revision| !spec.is_revision(revision));
    is_old && spec.updates() && spec.policy != "InPlaceOnly" && spec.partition < spec.replicas
}
