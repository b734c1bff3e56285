//! *"Never below `replicas − maxUnavailable` by the manager's doing."*
//!
//! An available pod may be deleted or made unavailable only while enough others are available.

use super::spec::{Knowledge, Spec};
use crate::rules::belief::Seen;
use crate::rules::prelude::*;

/// Judges writes that make a pod unavailable.
pub fn judge(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    let mut named = known.pods.iter().filter(|pod| pod.name() == write.name);
    let pod = known.pod(write.name).or_else(|| named.next())?;
    let after = mirror.last(PODS, &pod.truth().uid)?;
    let deletes = write.method == Method::Delete;
    let now = write.now;
    let spec_of = |min_ready: i64| move |object: &Object| object.is_available(min_ready, now);
    // A phase of its lifecycle makes a pod unavailable as well as a condition.
    let was_available = pod.truth().is_available(0, now);
    let stays = if was_available {
        after.is_available(0, now)
    } else {
        after.is_ready()
    };
    if !pod.truth().is_ready() || (!deletes && stays) {
        return None;
    }
    let is_other = |other: &&Seen<'_>| other.name() != pod.name();
    let fits = |spec: &Spec| {
        let available = spec_of(spec.min_ready_seconds);
        // One that may have been believed not to be available costs nothing.
        let free = pod.may_be(|object| !object.is_certainly_available(spec.min_ready_seconds, write.decided));
        let others = known.pods.iter().filter(is_other);
        let others = others.filter(|other| other.may_be(available));
        free || others.count() as i64 >= spec.replicas - spec.max_unavailable
    };
    never!(write, "availability", !known.allows(fits)
        => "at most {} pods are available; specifications: {}", known.most(spec_of(0)), brief(known));
    None
}

/// The numbers of the specifications that may have been believed.
pub fn brief(known: &Knowledge<'_>) -> String {
    let one = |spec: &Spec| {
        format!(
            "replicas {} maxUnavailable {} maxSurge {} partition {} paused {} {}",
            spec.replicas, spec.max_unavailable, spec.max_surge, spec.partition, spec.paused, spec.policy
        )
    };
    known.specs.iter().map(one).collect::<Vec<_>>().join(" or ")
}
