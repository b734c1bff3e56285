//! The patches of an in-place update.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::names::{
    IN_PLACE_UPDATE_READY, INPLACE_GRACE, INPLACE_GRACE_LEGACY, INPLACE_STATE, INPLACE_STATE_LEGACY,
    KRUISE_POD_READY, POD_TEMPLATE_HASH, REVISION_HASH,
};
use kruise_views::{PodView, Truth};
use serde_json::{Value, json};

use super::{
    completion::same_image,
    diff::Change,
    state::{Batch, ImageStatus, UpdateState, read_state},
};
use crate::{
    lifecycle::{State, go_time},
    put,
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

/// The patches that start an update.
#[derive(Clone, Debug, PartialEq)]
pub struct Departure {
    /// Strategic merge patch of the status: readiness off. `None` if nothing restarts, the pod has no such gate, or it
    /// is off already.
    pub unready: Option<Value>,
    /// Strategic merge patch of the pod: revision labels, lifecycle, progress, images, metadata.
    pub update: Value,
}

/// Builds the patches that take `pod` to a revision.
pub fn start(pod: &PodView, change: &Change, revision: RevisionLabels<'_>, now: Timestamp) -> Departure {
    let mut metadata = change.metadata.clone();
    put(&mut metadata, &["labels", REVISION_HASH], revision.label.into());
    put(
        &mut metadata,
        &["labels", POD_TEMPLATE_HASH],
        revision.hash.into(),
    );
    for (map, values) in State::Updating.metadata(now).as_object().into_iter().flatten() {
        for (key, value) in values.as_object().into_iter().flatten() {
            put(&mut metadata, &[map, key], value.clone());
        }
    }
    let state = progress_annotation(pod, change, revision.name, now);
    put(&mut metadata, &["annotations", INPLACE_STATE], state.into());
    for stale in [INPLACE_STATE_LEGACY, INPLACE_GRACE, INPLACE_GRACE_LEGACY] {
        if pod.annotations.get(stale).is_some() {
            put(&mut metadata, &["annotations", stale], Value::Null);
        }
    }
    let mut update = json!({"metadata": metadata});
    if !change.images.is_empty() {
        let containers: Vec<Value> = change
            .images
            .iter()
            .map(|(name, image)| json!({"name": name, "image": image}))
            .collect();
        put(&mut update, &["spec", "containers"], containers.into());
    }
    Departure {
        unready: unready(pod, change, now),
        update,
    }
}

fn progress_annotation(pod: &PodView, change: &Change, revision: &str, now: Timestamp) -> String {
    let earlier = unfinished(pod);
    let mut statuses: BTreeMap<String, ImageStatus> = earlier.last_container_statuses.unwrap_or_default();
    for name in change.images.keys() {
        statuses.remove(name);
        if let Some(status) = pod.status_of(name) {
            let image_id = status.image_id.to_string();
            statuses.insert(name.clone(), ImageStatus { image_id });
        }
    }
    let containers: Vec<String> = change.images.keys().cloned().collect();
    let state = UpdateState {
        revision: revision.to_owned(),
        update_timestamp: Some(go_time(now)),
        last_container_statuses: (!statuses.is_empty()).then_some(statuses),
        update_env_from_metadata: change.environment || earlier.update_env_from_metadata,
        update_images: !change.images.is_empty() || earlier.update_images,
        container_batches_record: if containers.is_empty() {
            Vec::new()
        } else {
            vec![Batch {
                timestamp: Some(go_time(now)),
                containers,
            }]
        },
        ..UpdateState::default()
    };
    // A struct of strings and booleans always serializes.
    serde_json::to_string(&state).unwrap_or_default()
}

/// What an earlier update still waits for. A new update takes it over: forgetting it would end the earlier one before
/// its containers run what was asked for.
fn unfinished(pod: &PodView) -> UpdateState {
    let Ok(Some(mut state)) = read_state(pod) else {
        return UpdateState::default();
    };
    if State::of(pod) != State::Updating {
        return UpdateState::default();
    }
    let mut statuses = state.last_container_statuses.take().unwrap_or_default();
    statuses.retain(|name, before| {
        pod.status_of(name).is_none_or(|status| {
            let wanted = pod.image_of(name).unwrap_or_default();
            *status.image_id == *before.image_id && !same_image(wanted, &status.image)
        })
    });
    state.update_images = !statuses.is_empty();
    state.last_container_statuses = Some(statuses);
    state
}

fn unready(pod: &PodView, change: &Change, now: Timestamp) -> Option<Value> {
    let already = pod
        .condition(IN_PLACE_UPDATE_READY)
        .is_some_and(|condition| condition.status == Truth::False);
    if !change.restarts() || !pod.has_gate(IN_PLACE_UPDATE_READY) || already {
        return None;
    }
    let mut conditions = vec![json!({
        "type": IN_PLACE_UPDATE_READY, "status": "False", "reason": "StartInPlaceUpdate", "message": null,
        "lastTransitionTime": go_time(now),
    })];
    if pod.is_true("Ready") && pod.is_true("ContainersReady") {
        conditions.push(json!({
            "type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady",
            "message": failing_gates(pod), "lastTransitionTime": go_time(now),
        }));
    }
    Some(json!({"status": {"conditions": conditions}}))
}

/// The kubelet's words for each gate that is not True once `InPlaceUpdateReady` is off.
fn failing_gates(pod: &PodView) -> String {
    let failing = pod.gates.iter().filter_map(|gate| {
        if &**gate == IN_PLACE_UPDATE_READY {
            return Some(format!(
                "the status of pod readiness gate \"{gate}\" is not \"True\", but False"
            ));
        }
        match pod.condition(gate) {
            None => Some(format!(
                "corresponding condition of pod readiness gate \"{gate}\" does not exist."
            )),
            Some(condition) if condition.status == Truth::True => None,
            Some(condition) => Some(format!(
                "the status of pod readiness gate \"{gate}\" is not \"True\", but {:?}",
                condition.status
            )),
        }
    });
    let failing: Vec<String> = failing.collect();
    if failing.len() == 1 {
        failing.concat()
    } else {
        format!("[{}]", failing.join(", "))
    }
}

/// What a pod needs to enter, or come back into, service.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// Strategic merge patch for the status endpoint, metadata included.
    pub patch: Value,
    /// Does it change a condition, or only metadata?
    pub conditions: bool,
}

/// Builds the patch that sets missing readiness conditions and moves the lifecycle on; `None` if all is as it should
/// be. `next` is the lifecycle state to enter, if any.
pub fn finish(pod: &PodView, next: Option<State>, now: Timestamp) -> Option<Finish> {
    let mut conditions = Vec::new();
    if pod.has_gate(IN_PLACE_UPDATE_READY) && !settled(pod) {
        conditions.push(json!({
            "type": IN_PLACE_UPDATE_READY, "status": "True", "reason": null, "message": null,
            "lastTransitionTime": go_time(now),
        }));
    }
    if pod.has_gate(KRUISE_POD_READY) && pod.condition(KRUISE_POD_READY).is_none() {
        conditions
            .push(json!({"type": KRUISE_POD_READY, "status": "True", "lastTransitionTime": go_time(now)}));
    }
    if conditions.is_empty() && next.is_none() {
        return None;
    }
    let mut patch = json!({});
    if let Some(next) = next {
        put(&mut patch, &["metadata"], next.metadata(now));
    }
    let changed = !conditions.is_empty();
    if changed {
        put(&mut patch, &["status", "conditions"], conditions.into());
    }
    Some(Finish {
        patch,
        conditions: changed,
    })
}

fn settled(pod: &PodView) -> bool {
    pod.condition(IN_PLACE_UPDATE_READY).is_some_and(|condition| {
        condition.status == Truth::True && condition.reason.is_empty() && condition.message.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kruise_views::{ConditionView, ContainerStatusView, PodView, Truth};
    use serde_json::json;

    use super::{RevisionLabels, finish, start};
    use crate::{inplace::Change, lifecycle::State};

    fn now() -> Timestamp {
        "2026-01-02T03:04:05.678Z".parse().unwrap()
    }

    fn condition(kind: &str, status: Truth) -> ConditionView {
        ConditionView {
            kind: kind.into(),
            status,
            ..ConditionView::default()
        }
    }

    fn pod() -> PodView {
        PodView {
            gates: Box::new(["InPlaceUpdateReady".into(), "KruisePodReady".into()]),
            conditions: Box::new([
                condition("Ready", Truth::True),
                condition("ContainersReady", Truth::True),
                condition("InPlaceUpdateReady", Truth::True),
                condition("KruisePodReady", Truth::True),
            ]),
            statuses: Box::new([ContainerStatusView {
                name: "main".into(),
                image_id: "id1".into(),
                ..ContainerStatusView::default()
            }]),
            annotations: [("inplace-update-state", "{}")].into_iter().collect(),
            ..PodView::default()
        }
    }

    const REVISION: RevisionLabels<'static> = RevisionLabels {
        name: "web-abc",
        label: "web-abc",
        hash: "abc",
    };

    #[test]
    fn an_image_change_first_takes_the_pod_out_of_service() {
        let change = Change {
            images: [("main".into(), "web:2".into())].into(),
            metadata: json!({}),
            environment: false,
        };
        let departure = start(&pod(), &change, REVISION, now());
        let conditions = &departure.unready.unwrap()["status"]["conditions"];
        assert_eq!(conditions[0]["reason"], "StartInPlaceUpdate");
        assert_eq!(conditions[1]["type"], "Ready");
        assert_eq!(
            conditions[1]["message"],
            "the status of pod readiness gate \"InPlaceUpdateReady\" is not \"True\", but False"
        );
        let update = departure.update;
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
        let departure = start(&pod(), &change, REVISION, now());
        assert_eq!(departure.unready, None);
        assert!(departure.update.get("spec").is_none());
        assert_eq!(departure.update["metadata"]["annotations"]["b"], "2");
    }

    #[test]
    fn a_new_pod_gets_both_conditions_and_its_state_in_one_patch() {
        let mut new = pod();
        new.conditions = Box::default();
        let finish = finish(&new, Some(State::Normal), now()).unwrap();
        assert_eq!(finish.patch["status"]["conditions"].as_array().unwrap().len(), 2);
        assert_eq!(
            finish.patch["metadata"]["labels"]["lifecycle.apps.kruise.io/state"],
            "Normal"
        );
    }

    #[test]
    fn a_pod_that_is_as_it_should_be_gets_nothing() {
        assert_eq!(finish(&pod(), None, now()), None);
    }

    #[test]
    fn a_pod_readiness_condition_that_somebody_turned_off_is_left_alone() {
        let mut held = pod();
        held.conditions = Box::new([
            condition("InPlaceUpdateReady", Truth::True),
            condition("KruisePodReady", Truth::False),
        ]);
        assert_eq!(finish(&held, None, now()), None);
    }
}
