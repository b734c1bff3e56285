//! The step that begins an in-place update: its patches.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::names::{
    IN_PLACE_UPDATE_READY, INPLACE_GRACE, INPLACE_GRACE_LEGACY, INPLACE_STATE, INPLACE_STATE_LEGACY,
    POD_TEMPLATE_HASH, REVISION_HASH, conditions::START_IN_PLACE_UPDATE,
};
use kruise_views::{PodView, Truth};
use serde_json::{Value, json};

use super::{
    arrival::is_pending,
    batch::{self, Applied},
    diff::Change,
    grace::Grace,
    machine::Update,
    record::{Record, serialize},
    resources::{Resize, VerticalScaling, awaited, fold},
    state::{UpdateState, read_state},
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
    /// Name of the `ControllerRevision`, for the progress annotation.
    pub name: &'a str,
    /// Value of `controller-revision-hash`.
    pub label: &'a str,
    /// Value of `pod-template-hash`; none where pods do not have it.
    pub hash: Option<&'a str>,
}

/// A pod's lifecycle label while it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateLabel {
    /// `Updating`, until its containers run what was asked for.
    Updating,
    /// As before: nothing restarts and nothing waits for the label.
    Unchanged,
}

/// The patches that take one pod to a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Patches {
    /// Strategic merge patch of the status: readiness off. `None` if nothing restarts, the pod has no such gate, or it
    /// is off already.
    pub unready: Option<Body>,
    /// Strategic merge patch for the `resize` endpoint: other resources of containers. `None` if none change, or
    /// the pod asks for them already.
    pub resize: Option<Body>,
    /// Strategic merge patch of the pod: revision labels, lifecycle, progress, images, metadata.
    pub update: Body,
}

/// One step of many pods: what their patches share is built once.
#[derive(Clone, Debug)]
pub struct UpdateSpec {
    change: Change,
    record: Record,
    /// The patch, without what depends on the pod.
    update: Arc<Value>,
    /// The patch of resources, if any change.
    resize: Option<Arc<Value>>,
    scaling: VerticalScaling,
    /// `metadata` of every pod that takes this step: revision and lifecycle.
    metadata: Value,
    /// Readiness off for a pod that is not Ready, and for one that is.
    unready: [Arc<Value>; 2],
    grace_seconds: i32,
    now: String,
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

impl UpdateSpec {
    /// Prepares the step to a revision, taken now. Between readiness off and the change pods get `grace_seconds`;
    /// resources change as `scaling` says.
    pub fn new(
        change: Change,
        revision: RevisionLabels<'_>,
        label: UpdateLabel,
        grace_seconds: i32,
        scaling: VerticalScaling,
        now: Timestamp,
    ) -> Self {
        let mut metadata = json!({"labels": {REVISION_HASH: revision.label}});
        if let Some(hash) = revision.hash {
            put(&mut metadata, &["labels", POD_TEMPLATE_HASH], hash.into());
        }
        put(&mut metadata, &["annotations", INPLACE_STATE], "".into());
        if label == UpdateLabel::Updating {
            for (map, values) in State::Updating.metadata(now).as_object().into_iter().flatten() {
                for (key, value) in values.as_object().into_iter().flatten() {
                    put(&mut metadata, &[map, key], value.clone());
                }
            }
        }
        let now = go_time(now);
        let mut state = UpdateState {
            revision: revision.name.to_owned(),
            update_timestamp: Some(now.clone()),
            update_env_from_metadata: !change.read.is_empty(),
            update_resources: !change.resources.is_empty(),
            update_images: !change.images.is_empty(),
            given_back: change.gives_back,
            ..UpdateState::default()
        };
        let applied = batch::apply(&change, &PodView::default(), &mut state, &now);
        let (mut update, resize) = split(applied, scaling);
        add_members(&mut update, &metadata);
        Self {
            resize: resize.map(Arc::new),
            scaling,
            record: Record::new(state),
            update: Arc::new(update),
            metadata,
            unready: readiness_off(&now).map(Arc::new),
            change,
            grace_seconds,
            now,
        }
    }

    /// The patches for one pod.
    pub fn patches_of(&self, pod: &PodView) -> Patches {
        let carried = carried(pod);
        let alone = carried.is_some()
            || (self.grace_seconds > 0 && self.change.restarts())
            || batch::first(&self.change, pod).is_some();
        if alone {
            return self.patches_of_one(pod, carried);
        }
        let mut set = vec![(STATE, self.progress_annotation(pod).into())];
        for (stale, pointer) in STALE {
            if pod.annotations.get(stale).is_some() {
                set.push((pointer, Value::Null));
            }
        }
        let asks = |(name, resize): (&String, &Resize)| resize.is_asked(pod.resources_of(name));
        let resize = self
            .resize
            .as_ref()
            .filter(|_| !self.change.resources.iter().all(asks));
        Patches {
            unready: self.unready(pod, &self.change),
            resize: resize.map(|resize| Body {
                base: Arc::clone(resize),
                set: Vec::new(),
            }),
            update: Body {
                base: Arc::clone(&self.update),
                set,
            },
        }
    }

    /// The patches for a pod whose change is its own: it comes later, in parts, or on top of one that has not been
    /// made.
    fn patches_of_one(&self, pod: &PodView, carried: Option<Carried>) -> Patches {
        let mut change = self.change.clone();
        let mut since = self.now.clone();
        let mut is_given_later = false;
        if let Some(carried) = carried {
            change = change.over(carried.change);
            change
                .images
                .retain(|name, image| pod.image_of(name) != Some(image.as_str()));
            let wanted = change.resources.len();
            change
                .resources
                .retain(|name, resize| !resize.is_asked(pod.resources_of(name)));
            // A write before this one has asked, and the node has not given it yet.
            is_given_later = change.resources.len() < wanted && awaited(pod).is_some();
            // Templates that change more often than the period lasts must not keep the pod out of service for good.
            since = carried.since.unwrap_or(since);
        }
        let mut state = UpdateState {
            update_timestamp: Some(since),
            update_env_from_metadata: !change.read.is_empty(),
            update_resources: is_given_later || !change.resources.is_empty(),
            update_images: !change.images.is_empty(),
            last_container_statuses: None,
            ..self.record.state().clone()
        };
        state.clear_batches();
        if let Some(earlier) = unfinished(pod) {
            state.take_over(earlier);
        }
        let mut resize = None;
        let mut update = if self.grace_seconds > 0 && change.restarts() {
            let grace = Grace::of(&change, &state.revision, self.grace_seconds);
            json!({"metadata": {"annotations": {INPLACE_GRACE: serialize(&grace)}}})
        } else {
            let applied = batch::apply(&change, pod, &mut state, &self.now);
            let (mut patch, resources) = split(applied, self.scaling);
            resize = resources;
            if pod.annotations.get(INPLACE_GRACE).is_some() {
                put(
                    &mut patch,
                    &["metadata", "annotations", INPLACE_GRACE],
                    Value::Null,
                );
            }
            patch
        };
        add_members(&mut update, &self.metadata);
        let annotation = serialize(&state);
        put(
            &mut update,
            &["metadata", "annotations", INPLACE_STATE],
            annotation.into(),
        );
        for stale in [INPLACE_STATE_LEGACY, INPLACE_GRACE_LEGACY] {
            if pod.annotations.get(stale).is_some() {
                put(&mut update, &["metadata", "annotations", stale], Value::Null);
            }
        }
        Patches {
            unready: self.unready(pod, &change),
            resize: resize.map(Body::from),
            update: update.into(),
        }
    }

    fn progress_annotation(&self, pod: &PodView) -> String {
        let names = self.change.images.keys();
        let Some(earlier) = unfinished(pod) else {
            return self.record.of(pod, names);
        };
        let mut state = self.record.state().clone();
        for name in names {
            batch::record(pod, name, &mut state);
        }
        state.take_over(earlier);
        serialize(&state)
    }

    fn unready(&self, pod: &PodView, change: &Change) -> Option<Body> {
        let already = pod
            .condition(IN_PLACE_UPDATE_READY)
            .is_some_and(|condition| condition.status == Truth::False);
        if !change.restarts() || !pod.has_gate(IN_PLACE_UPDATE_READY) || already {
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

/// The patch of the pod, and that of its resources where they have a request of their own.
fn split(applied: Applied, scaling: VerticalScaling) -> (Value, Option<Value>) {
    let Applied { mut patch, resize } = applied;
    if scaling.has_endpoint() {
        return (patch, resize);
    }
    if let Some(resize) = resize {
        fold(resize, &mut patch);
    }
    (patch, None)
}

/// A change that is in a pod's labels and that its containers have not received yet.
struct Carried {
    change: Change,
    /// When its grace period began.
    since: Option<String>,
}

/// What a grace period or a later batch still holds back.
fn carried(pod: &PodView) -> Option<Carried> {
    match Update::of(pod).ok()? {
        Update::Grace { held, record } => {
            let current = held.is_of_revision_of(pod);
            let change = held.change().ok().filter(|_| current).unwrap_or_default();
            let since = record
                .filter(|_| current)
                .and_then(|record| record.update_timestamp);
            Some(Carried { change, since })
        }
        Update::Changing(record) if record.has_next_batch() => Some(Carried {
            change: batch::next(&record),
            since: None,
        }),
        Update::Changing(_) | Update::Idle => None,
    }
}

/// Adds labels and annotations to the metadata of a patch.
fn add_members(patch: &mut Value, metadata: &Value) {
    for (map, values) in metadata.as_object().into_iter().flatten() {
        for (key, value) in values.as_object().into_iter().flatten() {
            put(patch, &["metadata", map, key], value.clone());
        }
    }
}

/// The status patches for a pod that is not Ready, and for one that is.
fn readiness_off(now: &str) -> [Value; 2] {
    let own = json!({
        "type": IN_PLACE_UPDATE_READY, "status": "False", "reason": START_IN_PLACE_UPDATE, "message": null,
        "lastTransitionTime": now,
    });
    let pods = not_ready("", now);
    [json!([own]), json!([own, pods])].map(|conditions| json!({"status": {"conditions": conditions}}))
}

/// What an earlier update still waits for. A new update takes it over: forgetting it would end the earlier one before
/// its containers run what was asked for. Not every workload labels pods while they are updated.
fn unfinished(pod: &PodView) -> Option<UpdateState> {
    let gate = pod.condition(IN_PLACE_UPDATE_READY);
    let is_off = gate.is_some_and(|gate| gate.status == Truth::False);
    if State::of(pod) != State::Updating && !is_off {
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
mod tests;
