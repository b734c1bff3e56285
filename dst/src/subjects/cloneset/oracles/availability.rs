//! *"Never below `replicas − maxUnavailable` by the manager's doing."*
//!
//! An available pod may be deleted or made unavailable only while enough others are available.

use kruise_sim::Method;

use super::spec::{Knowledge, Spec};
use crate::engine::oracles::{Mirror, Object, PODS, Violation, Write};

/// Judges writes that make a pod unavailable.
pub fn judge(write: &Write<'_>, known: &Knowledge<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" || write.component != "cloneset-controller" || write.name.is_empty() {
        return None;
    }
    let pod = known
        .pod(write.name)
        .or_else(|| known.pods.iter().find(|pod| pod.name() == write.name))?;
    let after = mirror.of(PODS).objects.get(&pod.truth().uid)?.last()?;
    let deletes = write.method == Method::Delete;
    let now = write.now;
    let spec_of = |min_ready: i64| move |object: &Object| object.is_available(min_ready, now);
    // A phase of its lifecycle makes a pod unavailable as well as a condition.
    let stays = if pod.truth().is_available(0, now) {
        after.is_available(0, now)
    } else {
        after.is_ready()
    };
    let takes_out = pod.truth().is_ready() && (deletes || !stays);
    if !takes_out {
        return None;
    }
    let fits = |spec: &Spec| {
        let available = spec_of(spec.min_ready_seconds);
        // One that may have been believed not to be available costs nothing.
        let free = pod.may_be(|object| !object.is_certainly_available(spec.min_ready_seconds, write.decided));
        let others = known
            .pods
            .iter()
            .filter(|other| other.name() != pod.name() && other.may_be(available))
            .count() as i64;
        free || others >= spec.replicas - spec.max_unavailable
    };
    if known.allows(fits) {
        return None;
    }
    let available = known.most(spec_of(0));
    Some(Violation {
        oracle: "availability",
        what: format!(
            "{} made {} unavailable while at most {available} pods were available; specifications: {}",
            write.process,
            write.name,
            brief(known)
        ),
    })
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
