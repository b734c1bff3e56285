//! The state that a pod of a workload must reach after the last edit and the last fault.

use jiff::Timestamp;

use super::labels::{REVISION, SPECIFIED};
use crate::engine::oracles::{CONFIGMAPS, Mirror, Object, REVISIONS};

/// Both are equal.
pub fn expect<T: PartialEq + std::fmt::Debug>(
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
pub fn settled(pod: &Object, min_ready_seconds: i64, mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    let name = &pod.name;
    if !pod.is_available(min_ready_seconds, now) {
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
    settled_on(pod, revision)
}

/// A pod runs what its revision demands.
pub fn settled_on(pod: &Object, revision: &Object) -> Result<(), String> {
    let name = &pod.name;
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
