//! The state that a pod of a workload must reach after the last edit and the last fault.

use crate::rules::prelude::*;

/// A pod is available, and it is what its revision demands.
pub fn settled(pod: &Object, min_ready_seconds: i64, mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    let name = &pod.name;
    wrong!(!pod.is_available(min_ready_seconds, now)
        => "pod {name} is not available: {}", pod.value()["status"]["conditions"]);
    for gate in ["InPlaceUpdateReady", "KruisePodReady"] {
        expect(format_args!("pod {name}: {gate}"), pod.state(gate), "True")?;
    }
    wrong!(pod.has_label(SPECIFIED) => "pod {name} is marked for deletion");
    // Containers that start in order have a barrier, and once all have started an annotation records it.
    let started =
        &pod.value()["metadata"]["annotations"]["apps.kruise.io/container-launch-priority-completed"];
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
        let running = named(&pod.value()["status"]["containerStatuses"], container);
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
