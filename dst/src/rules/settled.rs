//! The state that a pod of a workload must reach after the last edit and the last fault.

use crate::rules::prelude::*;

/// A pod is available, and it is what its revision demands.
pub fn settled(pod: &Object, min_ready_seconds: i64, mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    let name = &pod.name;
    wrong!(!pod.is_available(min_ready_seconds, now)
        => "pod {name} is not available: {}", pod.status()["conditions"]);
    for gate in ["InPlaceUpdateReady", "KruisePodReady"] {
        expect(format_args!("pod {name}: {gate}"), pod.state(gate), "True")?;
    }
    wrong!(pod.has_label(SPECIFIED) => "pod {name} is marked for deletion");
    // Containers that start in order have a barrier, and once all have started an annotation records it.
    let started = &pod.annotations()["apps.kruise.io/container-launch-priority-completed"];
    let barrier = mirror.of(CONFIGMAPS).named(&format!("{name}-barrier"));
    wrong!(barrier.is_some() && started != "true"
        => "pod {name} does not record yet that its containers have started");
    let label = pod.label(REVISION);
    let revision = mirror
        .of(REVISIONS)
        .named(label)
        .ok_or_else(|| format!("pod {name}: revision {label} is gone"))?;
    settled_on(pod, revision)
}

/// A pod runs what its revision demands.
pub fn settled_on(pod: &Object, revision: &Object) -> Result<(), String> {
    let name = &pod.name;
    let template = &revision.value()["data"]["spec"]["template"];
    for (container, image) in pod.images() {
        let wanted = named(&template["spec"]["containers"], container);
        expect(
            format_args!("pod {name}: image of {container}"),
            Some(image),
            wanted.and_then(|one| one["image"].as_str()),
        )?;
        let running = named(&pod.status()["containerStatuses"], container);
        expect(
            format_args!("pod {name}: running image of {container}"),
            running.and_then(|one| one["image"].as_str()),
            Some(image),
        )?;
    }
    for (key, value) in pairs(&template["metadata"]["annotations"]) {
        expect(
            format_args!("pod {name}: annotation {key}"),
            &pod.annotations()[key],
            value,
        )?;
    }
    Ok(())
}

/// The pods of a workload, none of which is being deleted or has left the selector.
pub fn pods_of<'m>(set: &'m Object, mirror: &'m Mirror) -> Result<Vec<&'m Arc<Object>>, String> {
    let pods: Vec<&Arc<Object>> = mirror.owned(PODS, set).collect();
    wrong!(some pod in pods.iter().find(|pod| pod.is_going()) => "pod {} is still being deleted", pod.name);
    let selector = &set.spec()["selector"];
    wrong!(some pod in pods.iter().find(|pod| pod.is_active() && !matches(selector, pod))
        => "pod {} left the selector and is still owned", pod.name);
    Ok(pods)
}

/// A status is of the newest specification.
pub fn observed(object: &Object) -> Result<(), String> {
    let what = format_args!("observedGeneration of {}", object.name);
    expect(what, &object.status()["observedGeneration"], object.generation())
}

/// A status names what it must.
pub fn names(status: &Value, member: &str, wanted: &str) -> Result<(), String> {
    expect(
        format_args!("status.{member}"),
        status[member].as_str(),
        Some(wanted),
    )
}

/// No condition whose type is that of a failure is true.
pub fn no_failure(status: &Value, is_failure: impl Fn(&str) -> bool) -> Result<(), String> {
    let mut conditions = items(&status["conditions"]);
    let failed = conditions.find(|one| one["status"] == "True" && is_failure(text(&one["type"])));
    wrong!(some condition in failed => "status reports a failure that is over: {condition}");
    Ok(())
}

/// Not more revisions that nothing uses than the history may have.
pub fn history(
    set: &Object,
    limit: i64,
    mirror: &Mirror,
    is_used: impl Fn(&Object) -> bool,
) -> Result<(), String> {
    let unused = mirror.owned(REVISIONS, set).filter(|one| !is_used(one)).count() as i64;
    wrong!(unused > limit => "{unused} revisions that nothing uses, {limit} are kept");
    Ok(())
}

/// A status counts so many pods that are there and available, and of these so many that are updated.
pub fn replicas(set: &Object, all: i64, updated: i64) -> Result<(), String> {
    observed(set)?;
    counts!(set.status() => "replicas": all, "readyReplicas": all, "availableReplicas": all,
        "updatedReplicas": updated, "updatedReadyReplicas": updated, "updatedAvailableReplicas": updated)
}

/// Writes, about, until the rollout of the only workload of a resource has ended: each pod takes so many, with its
/// share of those of the status, and the rollout a few once. `read`: how many pods are to be updated, and which of
/// them are.
pub fn rollout<'m, F: Fn(&Object) -> bool>(
    mirror: &'m Mirror,
    workloads: Resource,
    each: usize,
    read: impl FnOnce(&'m Object) -> (i64, F),
) -> usize {
    let Some(set) = mirror.only(workloads) else {
        return 0;
    };
    let (wanted, is_updated) = read(set);
    let updated = mirror.owned(PODS, set).filter(|pod| is_updated(pod)).count();
    match usize::try_from(wanted).unwrap_or(0).saturating_sub(updated) {
        0 => 0,
        left => 5 + left * each,
    }
}

/// Writes that a pod takes: on average of 1,200 times that scenarios settled 6.5, and 8.5 where a hook holds the pods.
pub fn each_takes(has_hook: bool) -> usize {
    if has_hook { 8 } else { 6 }
}
