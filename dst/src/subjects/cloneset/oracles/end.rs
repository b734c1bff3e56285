//! What must be once nobody edits or breaks anything any more.

use jiff::Timestamp;

use super::{progressing, spec::Spec};
use crate::engine::oracles::{CONFIGMAPS, Mirror, Object, PODS, REVISIONS};
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::labels::{REVISION, SPECIFIED};
use crate::subjects::pod_writes::{claims, environment, resources};

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
    if let Some(pod) = going {
        return Err(format!("pod {} is still being deleted", pod.name));
    }
    let labels = set.value()["spec"]["selector"]["matchLabels"].as_object();
    let strays = |pod: &Object| {
        labels
            .into_iter()
            .flatten()
            .any(|(key, value)| pod.label(key) != value)
    };
    if let Some(pod) = active.iter().find(|pod| strays(pod)) {
        return Err(format!("pod {} left the selector and is still owned", pod.name));
    }
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
        settled(pod, &spec, mirror, now)?;
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
    if !spec.on_delete && updated < spec.replicas - spec.partition {
        return Err(format!(
            "{updated} pods are updated, {} replicas, partition {}",
            spec.replicas, spec.partition
        ));
    }
    if rolls_back && set.value()["status"]["currentRevision"] != *revision.name {
        expect("updated pods", updated, spec.replicas - spec.partition)?;
    }
    status(set, &spec, &revision.name, updated)?;
    progressing::unfinished(set, &spec)
}

fn expect<T: PartialEq + std::fmt::Debug>(
    what: impl std::fmt::Display,
    found: T,
    wanted: T,
) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, not {wanted:?}"))
    }
}

/// A pod is available, and it is what its revision demands.
fn settled(pod: &Object, spec: &Spec, mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    let name = &pod.name;
    if !pod.is_available(spec.min_ready_seconds, now) {
        return Err(format!(
            "pod {name} is not available: {}",
            pod.value()["status"]["conditions"]
        ));
    }
    for gate in ["InPlaceUpdateReady", "KruisePodReady"] {
        expect(format_args!("pod {name}: {gate}"), pod.state(gate), "True")?;
    }
    if pod.has_label(SPECIFIED) {
        return Err(format!("pod {name} is marked for deletion"));
    }
    // Containers that start in order have a barrier, and once all have started an annotation records it.
    let started =
        &pod.value()["metadata"]["annotations"]["apps.kruise.io/container-launch-priority-completed"];
    let barrier = mirror.of(CONFIGMAPS).named(&format!("{name}-barrier"));
    if barrier.is_some() && started != "true" {
        return Err(format!(
            "pod {name} does not record yet that its containers have started"
        ));
    }
    let label = pod.label(REVISION);
    let revision = mirror
        .of(REVISIONS)
        .named(label)
        .ok_or_else(|| format!("pod {name}: revision {label} is gone"))?;
    let template = &revision.value()["data"]["spec"]["template"];
    for (container, image) in pod.images() {
        let wanted = template["spec"]["containers"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|one| one["name"] == container);
        expect(
            format_args!("pod {name}: image of {container}"),
            Some(image),
            wanted.and_then(|one| one["image"].as_str()),
        )?;
        let running = pod.value()["status"]["containerStatuses"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|one| one["name"] == container);
        expect(
            format_args!("pod {name}: running image of {container}"),
            running.and_then(|one| one["image"].as_str()),
            Some(image),
        )?;
    }
    for (key, value) in template["metadata"]["annotations"]
        .as_object()
        .into_iter()
        .flatten()
    {
        expect(
            format_args!("pod {name}: annotation {key}"),
            &pod.value()["metadata"]["annotations"][key],
            value,
        )?;
    }
    Ok(())
}

fn status(set: &Object, spec: &Spec, revision: &str, updated: i64) -> Result<(), String> {
    let status = &set.value()["status"];
    let all = spec.replicas;
    for (name, wanted) in [
        (
            "observedGeneration",
            set.value()["metadata"]["generation"].as_i64().unwrap_or(0),
        ),
        ("replicas", all),
        ("readyReplicas", all),
        ("availableReplicas", all),
        ("updatedReplicas", updated),
        ("updatedReadyReplicas", updated),
        ("updatedAvailableReplicas", updated),
        ("expectedUpdatedReplicas", all - spec.partition),
    ] {
        expect(
            format_args!("status.{name}"),
            status[name].as_i64().unwrap_or(0),
            wanted,
        )?;
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
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut failed =
        conditions.filter(|one| matches!(one["type"].as_str(), Some("FailedScale" | "FailedUpdate")));
    match failed.find(|one| one["status"] == "True") {
        Some(condition) => Err(format!("status reports a failure that is over: {condition}")),
        None => Ok(()),
    }
}
