//! The patches that begin an in-place update.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::names::{
    IN_PLACE_UPDATE_READY, INPLACE_GRACE, INPLACE_GRACE_LEGACY, INPLACE_STATE, INPLACE_STATE_LEGACY,
    POD_TEMPLATE_HASH, REVISION_HASH,
};
use kruise_views::{PodView, Truth};
use serde_json::{Value, json};

use super::{
    completion::is_pending,
    diff::Change,
    record::{Record, serialize},
    state::{Batch, ImageStatus, UpdateState, read_state},
};
use crate::{
    lifecycle::{State, go_time},
    put,
    readiness::{failing_gates, not_ready, serves},
    write::Body,
};

/// How a pod is labelled with its revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionLabels<'a> {
    /// Name of the `ControllerRevision`; goes into the progress annotation.
    pub name: &'a str,
    /// Value of `controller-revision-hash`.
    pub label: &'a str,
    /// Value of `pod-template-hash`.
    pub hash: &'a str,
}

/// What a pod's lifecycle label tells while it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// `Updating`, until its containers run what was asked for.
    Updating,
    /// What it told before: nothing restarts and nobody waits for the label.
    Unchanged,
}

/// The patches that take one pod to a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Departure {
    /// Strategic merge patch of the status: readiness off. `None` if nothing restarts, the pod has no such gate, or it
    /// is off already.
    pub unready: Option<Body>,
    /// Strategic merge patch of the pod: revision labels, lifecycle, progress, images, metadata.
    pub update: Body,
}

/// One step of many pods: what their patches share is built once.
#[derive(Clone, Debug)]
pub struct Outset {
    change: Change,
    record: Record,
    /// The patch, without what depends on the pod.
    update: Arc<Value>,
    /// Readiness off for a pod that is not Ready, and for one that is.
    unready: [Arc<Value>; 2],
}

/// Where the pod's own values go in the shared patches.
const STATE: &str = "/metadata/annotations/apps.kruise.io~1inplace-update-state";
const MESSAGE: &str = "/status/conditions/1/message";
const STALE: [(&str, &str); 3] = [
    (INPLACE_STATE_LEGACY, "/metadata/annotations/inplace-update-state"),
    (
        INPLACE_GRACE,
        "/metadata/annotations/apps.kruise.io~1inplace-update-grace",
    ),
    (INPLACE_GRACE_LEGACY, "/metadata/annotations/inplace-update-grace"),
];

impl Outset {
    /// Prepares the step to a revision, taken now.
    pub fn new(change: Change, revision: RevisionLabels<'_>, phase: Phase, now: Timestamp) -> Self {
        let mut metadata = change.metadata.clone();
        put(&mut metadata, &["labels", REVISION_HASH], revision.label.into());
        put(
            &mut metadata,
            &["labels", POD_TEMPLATE_HASH],
            revision.hash.into(),
        );
        put(&mut metadata, &["annotations", INPLACE_STATE], "".into());
        if phase == Phase::Updating {
            for (map, values) in State::Updating.metadata(now).as_object().into_iter().flatten() {
                for (key, value) in values.as_object().into_iter().flatten() {
                    put(&mut metadata, &[map, key], value.clone());
                }
            }
        }
        let images = change
            .images
            .iter()
            .map(|(name, image)| json!({"name": name, "image": image}));
        let containers: Vec<Value> = images.collect();
        let mut update = json!({ "metadata": metadata });
        if !containers.is_empty() {
            put(&mut update, &["spec", "containers"], containers.into());
        }
        let now = go_time(now);
        let batch = Batch {
            timestamp: Some(now.clone()),
            containers: change.images.keys().cloned().collect(),
        };
        let restarts = !change.images.is_empty();
        let record = Record::new(UpdateState {
            revision: revision.name.to_owned(),
            update_timestamp: Some(now.clone()),
            update_env_from_metadata: change.environment,
            update_images: restarts,
            container_batches_record: if restarts { vec![batch] } else { Vec::new() },
            ..UpdateState::default()
        });
        Self {
            record,
            update: Arc::new(update),
            unready: readiness_off(&now).map(Arc::new),
            change,
        }
    }

    /// The change that the pods make.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The patches for one pod.
    pub fn depart(&self, pod: &PodView) -> Departure {
        let mut set = vec![(STATE, self.progress_annotation(pod).into())];
        for (stale, pointer) in STALE {
            if pod.annotations.get(stale).is_some() {
                set.push((pointer, Value::Null));
            }
        }
        Departure {
            unready: self.unready(pod),
            update: Body {
                base: Arc::clone(&self.update),
                set,
            },
        }
    }

    fn progress_annotation(&self, pod: &PodView) -> String {
        let names = self.change.images.keys();
        let Some(earlier) = unfinished(pod) else {
            return self.record.of(pod, names);
        };
        let mut statuses = earlier.last_container_statuses.unwrap_or_default();
        for name in names {
            statuses.remove(name);
            if let Some(status) = pod.status_of(name) {
                let before = ImageStatus {
                    image_id: status.image_id.to_string(),
                    container_id: status.container_id.to_string(),
                };
                statuses.insert(name.clone(), before);
            }
        }
        let mut state = self.record.state().clone();
        state.last_container_statuses = (!statuses.is_empty()).then_some(statuses);
        state.update_env_from_metadata |= earlier.update_env_from_metadata;
        state.update_images |= earlier.update_images;
        serialize(&state)
    }

    fn unready(&self, pod: &PodView) -> Option<Body> {
        let already = pod
            .condition(IN_PLACE_UPDATE_READY)
            .is_some_and(|condition| condition.status == Truth::False);
        if !self.change.restarts() || !pod.has_gate(IN_PLACE_UPDATE_READY) || already {
            return None;
        }
        let [unready, ready] = &self.unready;
        if !serves(pod) {
            let base = Arc::clone(unready);
            return Some(Body {
                base,
                set: Vec::new(),
            });
        }
        let base = Arc::clone(ready);
        let set = vec![(MESSAGE, failing_gates(pod, IN_PLACE_UPDATE_READY).into())];
        Some(Body { base, set })
    }
}

/// The status patches for a pod that is not Ready, and for one that is.
fn readiness_off(now: &str) -> [Value; 2] {
    let own = json!({
        "type": IN_PLACE_UPDATE_READY, "status": "False", "reason": "StartInPlaceUpdate", "message": null,
        "lastTransitionTime": now,
    });
    let pods = not_ready("", now);
    [json!([own]), json!([own, pods])].map(|conditions| json!({"status": {"conditions": conditions}}))
}

/// What an earlier update still waits for. A new update takes it over: forgetting it would end the earlier one before
/// its containers run what was asked for.
fn unfinished(pod: &PodView) -> Option<UpdateState> {
    if State::of(pod) != State::Updating {
        return None;
    }
    let mut state = read_state(pod).ok()??;
    let mut statuses = state.last_container_statuses.take().unwrap_or_default();
    statuses.retain(|name, before| {
        pod.status_of(name)
            .is_none_or(|status| is_pending(status, before, pod.image_of(name).unwrap_or_default()))
    });
    state.update_images = !statuses.is_empty();
    state.last_container_statuses = Some(statuses);
    Some(state)
}

#[cfg(test)]
mod tests {
    use kruise_views::{ContainerStatusView, PodView};
    use serde_json::json;

    use super::{Departure, INPLACE_STATE, Outset, Phase, RevisionLabels, STALE, STATE};
    use crate::inplace::{
        Change,
        fixture::{self, now},
    };

    fn pod() -> PodView {
        PodView {
            statuses: Box::new([ContainerStatusView {
                name: "main".into(),
                image_id: "id1".into(),
                ..ContainerStatusView::default()
            }]),
            annotations: [("inplace-update-state", "{}")].into_iter().collect(),
            ..fixture::pod()
        }
    }

    const REVISION: RevisionLabels<'static> = RevisionLabels {
        name: "web-abc",
        label: "web-abc",
        hash: "abc",
    };

    fn start(change: Change) -> Departure {
        Outset::new(change, REVISION, Phase::Updating, now()).depart(&pod())
    }

    #[test]
    fn pointers_name_the_annotations() {
        for (key, pointer) in STALE.into_iter().chain([(INPLACE_STATE, STATE)]) {
            assert_eq!(
                pointer,
                format!("/metadata/annotations/{}", key.replace('/', "~1"))
            );
        }
    }

    #[test]
    fn an_image_change_first_takes_the_pod_out_of_service() {
        let change = Change {
            images: [("main".into(), "web:2".into())].into(),
            metadata: json!({}),
            environment: false,
        };
        let departure = start(change);
        let conditions = &departure.unready.unwrap().render()["status"]["conditions"];
        assert_eq!(conditions[0]["reason"], "StartInPlaceUpdate");
        assert_eq!(conditions[1]["type"], "Ready");
        assert_eq!(
            conditions[1]["message"],
            "the status of pod readiness gate \"InPlaceUpdateReady\" is not \"True\", but False"
        );
        let update = departure.update.render();
        assert_eq!(
            update["spec"],
            json!({"containers": [{"name": "main", "image": "web:2"}]})
        );
        assert_eq!(
            update["metadata"]["labels"]["lifecycle.apps.kruise.io/state"],
            "Updating"
        );
        assert_eq!(
            update["metadata"]["labels"]["controller-revision-hash"],
            "web-abc"
        );
        assert!(update["metadata"]["annotations"]["inplace-update-state"].is_null());
        assert_eq!(
            update["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"],
            r#"{"revision":"web-abc","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":{"main":{"imageID":"id1"}},"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-01-02T03:04:05Z","containers":["main"]}]}"#
        );
    }

    #[test]
    fn a_pure_metadata_change_never_takes_the_pod_out_of_service() {
        let change = Change {
            metadata: json!({"annotations": {"a": null, "b": "2"}}),
            ..Change::default()
        };
        let departure = start(change);
        assert_eq!(departure.unready, None);
        let update = departure.update.render();
        assert!(update.get("spec").is_none());
        assert_eq!(update["metadata"]["annotations"]["b"], "2");
    }
}
