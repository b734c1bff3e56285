//! The state that must be reached after the last edit and the last fault.

use super::super::draft::CLONESETS;
use super::progressing;
use super::spec::Spec;
use crate::rules::pod_writes::{claims, environment, resources};
use crate::rules::prelude::*;
use crate::rules::settled::settled;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, now: Timestamp, rolls_back: bool) -> Result<(), String> {
    let set = mirror.of(CLONESETS).now().next().ok_or("there is no set")?;
    let spec = Spec::of(set);
    let pods: Vec<_> = mirror
        .of(PODS)
        .now()
        .filter(|pod| pod.owner() == &*set.uid)
        .collect();
    let active: Vec<_> = pods.iter().filter(|pod| pod.is_active()).collect();
    let going = pods.iter().find(|pod| pod.is_going());
    wrong!(some pod in going => "pod {} is still being deleted", pod.name);
    let labels = set.value()["spec"]["selector"]["matchLabels"].as_object();
    let strays = |pod: &Object| {
        labels
            .into_iter()
            .flatten()
            .any(|(key, value)| pod.label(key) != value)
    };
    wrong!(some pod in active.iter().find(|pod| strays(pod))
        => "pod {} left the selector and is still owned", pod.name);
    expect("active pods", active.len() as i64, spec.replicas)?;
    claims::unfinished(set, &active, mirror)?;
    let revision = mirror
        .of(REVISIONS)
        .now()
        .filter(|one| one.owner() == &*set.uid)
        .find(|one| spec.is_revision(one));
    let revision = revision.ok_or("there is no revision of the template")?;
    let mut updated = 0;
    for pod in &active {
        settled(pod, spec.min_ready_seconds, mirror, now)?;
        environment::read(pod, mirror).map_err(|what| format!("pod {}: {what}", pod.name))?;
        if pod.label(REVISION) == &*revision.name {
            let wanted = resources::amounts(&spec.template["spec"]);
            expect(
                format_args!("pod {}: resources", pod.name),
                resources::requested(pod),
                wanted,
            )?;
            resources::given(pod).map_err(|what| format!("pod {}: {what}", pod.name))?;
        }
        updated += i64::from(pod.label(REVISION) == &*revision.name);
    }
    wrong!(!spec.on_delete && updated < spec.replicas - spec.partition
        => "{updated} pods are updated, {} replicas, partition {}", spec.replicas, spec.partition);
    if rolls_back && set.value()["status"]["currentRevision"] != *revision.name {
        expect("updated pods", updated, spec.replicas - spec.partition)?;
    }
    status(set, &spec, &revision.name, updated)?;
    progressing::unfinished(set, &spec)
}

fn status(set: &Object, spec: &Spec, revision: &str, updated: i64) -> Result<(), String> {
    let status = &set.value()["status"];
    let all = spec.replicas;
    for (name, wanted) in [
        (
            "observedGeneration",
            number(&set.value()["metadata"]["generation"]),
        ),
        ("replicas", all),
        ("readyReplicas", all),
        ("availableReplicas", all),
        ("updatedReplicas", updated),
        ("updatedReadyReplicas", updated),
        ("updatedAvailableReplicas", updated),
        ("expectedUpdatedReplicas", all - spec.partition),
    ] {
        expect(format_args!("status.{name}"), number(&status[name]), wanted)?;
    }
    expect(
        "status.updateRevision",
        status["updateRevision"].as_str(),
        Some(revision),
    )?;
    if updated == all {
        expect(
            "status.currentRevision",
            status["currentRevision"].as_str(),
            Some(revision),
        )?;
    }
    expect(
        "spec.scaleStrategy.podsToDelete",
        spec.pods_to_delete.as_slice(),
        &[],
    )?;
    let conditions = items(&status["conditions"]);
    let mut failed =
        conditions.filter(|one| matches!(one["type"].as_str(), Some("FailedScale" | "FailedUpdate")));
    match failed.find(|one| one["status"] == "True") {
        Some(condition) => Err(format!("status reports a failure that is over: {condition}")),
        None => Ok(()),
    }
}
