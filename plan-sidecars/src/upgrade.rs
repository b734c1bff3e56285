//! Changing the sidecars of one pod: their images, and the annotations that record it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_plan_kit::{
    Intent, ObjectWrites, Part, Step,
    injected::is_injected,
    inplace::ImageStatus,
    lifecycle::go_time,
    pod_writes::{self, Guard},
    put,
    sidecars::{Hashes, Record, names, patched},
};
use kruise_views::PodView;
use serde_json::{Value, json};

use crate::{
    condition, hot,
    pod::Pod,
    sidecars::{Kind, Sidecars},
    snapshot::Snapshot,
};

/// What all pods of a plan are upgraded to.
pub(crate) struct Goal<'g> {
    pub(crate) sidecars: &'g Sidecars,
    pub(crate) hashes: &'g Hashes,
    /// Name of the revision.
    pub(crate) revision: &'g str,
}

/// What changes on a pod.
#[derive(Default)]
pub(crate) struct Change {
    /// Images by container.
    pub(crate) images: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Change {
    /// Gives a container another image.
    pub(crate) fn image(&mut self, pod: &PodView, container: &str, image: &str) {
        if pod.image_of(container) != Some(image) {
            self.images.insert(container.to_owned(), image.to_owned());
        }
    }

    pub(crate) fn annotate(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.annotations.insert(key.into(), value.into());
    }

    /// Notes what the containers that change run now, so that their change can be detected.
    pub(crate) fn record(&mut self, snapshot: &Snapshot<'_>, pod: &Pod<'_>, hash: &str, now: &str) {
        if self.images.is_empty() {
            return;
        }
        let mut states = pod.states.clone().unwrap_or_default();
        let state = states.0.entry(snapshot.set.metadata.name.clone()).or_default();
        // The first upgrade is the one that is named and dated, as OpenKruise has it.
        if state.revision.is_empty() {
            hash.clone_into(&mut state.revision);
            state.update_timestamp = Some(now.to_owned());
        }
        let statuses = state.last_container_statuses.get_or_insert_default();
        for container in self.images.keys() {
            if let Some(status) = pod.view.status_of(container) {
                let before = ImageStatus {
                    image_id: status.image_id.to_string(),
                    container_id: status.running_id().to_owned(),
                };
                statuses.insert(container.clone(), before);
            }
        }
        self.annotate(names::INPLACE_STATE, states.write());
    }

    /// The patch. Containers are in the order of the pod, or the server would reorder those of the pod.
    pub(crate) fn body(self, pod: &PodView) -> Value {
        let mut body = json!({"metadata": {"annotations": self.annotations}});
        let containers = pod.containers.iter().filter_map(|container| {
            let image = self.images.get(&*container.name)?;
            Some(json!({"name": container.name, "image": image}))
        });
        let containers: Vec<Value> = containers.collect();
        if !containers.is_empty() {
            put(&mut body, &["spec", "containers"], containers.into());
        }
        body
    }
}

/// The upgrade of a pod.
pub(crate) struct Upgrade {
    pub(crate) object: ObjectWrites,
    /// Does a container get another image?
    pub(crate) restarts: bool,
}

/// The writes that upgrade a pod. The error is why an annotation that the set patches cannot be merged.
pub(crate) fn upgrade(
    snapshot: &Snapshot<'_>,
    goal: &Goal<'_>,
    pod: &Pod<'_>,
    now: Timestamp,
) -> Result<Upgrade, String> {
    let set = snapshot.set;
    let time = go_time(now);
    let mut change = Change::default();
    metadata(snapshot, pod, &mut change)?;
    let mut working = pod.working.clone();
    for sidecar in &goal.sidecars.all {
        match &sidecar.kind {
            Kind::Cold => change.image(pod.view, &sidecar.name, &sidecar.image),
            Kind::Hot { twins, empty } => {
                let of = hot::Hot {
                    name: &sidecar.name,
                    twins,
                    empty,
                    image: &sidecar.image,
                };
                hot::upgrade(snapshot, pod, &of, &mut working, &mut change);
            }
        }
    }
    if working != pod.working {
        change.annotate(names::WORKING, working.write());
    }
    change.record(snapshot, pod, &goal.hashes.full, &time);
    let mut records = pod.records.clone();
    let before = records.0.remove(&set.metadata.name).unwrap_or_default();
    let record = Record {
        update_timestamp: time,
        hash: goal.hashes.full.clone(),
        sidecar_set_name: set.metadata.name.clone(),
        sidecar_list: goal.sidecars.list.clone(),
        controller_revision: goal.revision.to_owned(),
        others: before.others,
    };
    records.0.insert(set.metadata.name.clone(), record);
    change.annotate(names::HASH, records.write());
    let restarts = !change.images.is_empty();
    let reason = reason(&change);
    let told = condition::tell(snapshot, pod, true, now);
    let guard = if told.is_some() {
        Guard::AfterPrevious
    } else {
        Guard::Unchanged
    };
    let body = change.body(pod.view);
    let mut steps: Vec<Step> = told.into_iter().collect();
    steps.push(patch(
        pod.view,
        Intent::UPDATE_IN_PLACE,
        Part::Main,
        body,
        guard,
        reason,
    ));
    Ok(Upgrade {
        object: ObjectWrites::of_pod(steps),
        restarts,
    })
}

fn reason(change: &Change) -> String {
    let images: Vec<String> = change
        .images
        .iter()
        .map(|(name, image)| format!("{name} to {image}"))
        .collect();
    if images.is_empty() {
        "it runs the wanted images already; only the record changes".to_owned()
    } else {
        images.join(", ")
    }
}

/// The annotations that the set patches, applied in their order.
fn metadata(snapshot: &Snapshot<'_>, pod: &Pod<'_>, change: &mut Change) -> Result<(), String> {
    for patch in &snapshot.set.spec.patch_pod_metadata {
        for (key, value) in &patch.annotations {
            let present = change.annotations.get(key).map(String::as_str);
            let present = present.or_else(|| pod.view.annotations.get(key));
            let result =
                patched(&patch.patch_policy, present, value).map_err(|error| format!("{key} {error}"))?;
            if let Some(result) = result.filter(|result| present != Some(result)) {
                change.annotate(key.clone(), result);
            }
        }
    }
    Ok(())
}

/// A strategic merge patch of a pod.
pub(crate) fn patch(
    pod: &PodView,
    intent: Intent,
    part: Part,
    body: Value,
    guard: Guard,
    reason: impl Into<String>,
) -> Step {
    let guard = if is_injected("SetVersionDropped") {
        Guard::SamePod
    } else {
        guard
    };
    pod_writes::patch(pod, intent, part, body, guard, reason)
}
