//! The state that must be reached after the last edit and the last fault.

use super::super::draft::CLONESETS;
use super::progressing;
use super::spec::Spec;
use crate::rules::pod_writes::{claims, environment, resources};
use crate::rules::prelude::*;
use crate::rules::settled::{names, no_failure, pods_of, replicas, settled};

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, now: Timestamp, rolls_back: bool) -> Result<(), String> {
    let set = mirror.only(CLONESETS).ok_or("there is no set")?;
    let spec = Spec::of(set);
    let pods = pods_of(set, mirror)?;
    let active: Vec<_> = pods.iter().filter(|pod| pod.is_active()).collect();
    expect("active pods", active.len() as i64, spec.replicas)?;
    claims::unfinished(set, &active, mirror)?;
    let revision = mirror.owned(REVISIONS, set).find(|one| spec.is_revision(one));
    let revision = revision.ok_or("there is no revision of the template")?;
    let mut updated = 0;
    for pod in &active {
        settled(pod, spec.min_ready_seconds, mirror, now)?;
        environment::read(pod, mirror).map_err(|what| format!("pod {}: {what}", pod.name))?;
        if pod.label(REVISION) == &*revision.name {
            let (requested, wanted) = (
                resources::requested(pod),
                resources::amounts(&spec.template["spec"]),
            );
            expect(format_args!("pod {}: resources", pod.name), requested, wanted)?;
            resources::given(pod).map_err(|what| format!("pod {}: {what}", pod.name))?;
        }
        updated += i64::from(pod.label(REVISION) == &*revision.name);
    }
    wrong!(!spec.on_delete && updated < spec.replicas - spec.partition
        => "{updated} pods are updated, {} replicas, partition {}", spec.replicas, spec.partition);
    if rolls_back && set.status()["currentRevision"] != *revision.name {
        expect("updated pods", updated, spec.replicas - spec.partition)?;
    }
    status(set, &spec, &revision.name, updated)?;
    progressing::unfinished(set, &spec)
}

fn status(set: &Object, spec: &Spec, revision: &str, updated: i64) -> Result<(), String> {
    let status = set.status();
    let all = spec.replicas;
    replicas(set, all, updated)?;
    counts!(status => "expectedUpdatedReplicas": all - spec.partition)?;
    names(status, "updateRevision", revision)?;
    if updated == all {
        names(status, "currentRevision", revision)?;
    }
    expect(
        "spec.scaleStrategy.podsToDelete",
        spec.pods_to_delete.as_slice(),
        &[],
    )?;
    no_failure(status, |kind| matches!(kind, "FailedScale" | "FailedUpdate"))
}
