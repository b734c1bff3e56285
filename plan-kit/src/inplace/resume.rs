//! Going on with an update: after its grace period, and batch after batch.

use jiff::Timestamp;
use kruise_api::names::{
    INPLACE_GRACE, INPLACE_GRACE_LEGACY, INPLACE_STATE, INPLACE_STATE_LEGACY, REVISION_HASH,
};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::{
    batch::{self, Applied},
    completion::Progress,
    diff::Change,
    grace::{self, Grace},
    record::serialize,
    state::UpdateState,
};
use crate::{lifecycle::go_time, put};

/// What becomes of a pod that has a grace period.
pub(super) fn after_grace(
    pod: &PodView,
    grace: &Grace,
    state: Option<UpdateState>,
    now: Timestamp,
) -> Progress {
    let label = pod.labels.get(REVISION_HASH).unwrap_or_default();
    if !go_compat::revision::label_matches_revision(label, &grace.revision) {
        let mut patch = json!({});
        drop_stale(&mut patch, pod, &GRACE);
        let reason = "its grace period was for another revision";
        return Progress::Due {
            resize: None,
            patch,
            reason,
        };
    }
    let since = state.as_ref().and_then(|state| state.update_timestamp.as_deref());
    let left = grace::left(since, grace.grace_seconds, now);
    if !left.is_zero() {
        return Progress::Grace(left);
    }
    let change = match grace.change() {
        Ok(change) => change,
        Err(error) => return Progress::Unreadable(error),
    };
    // Without a state nobody knows when the period began: it is over.
    let state = state.unwrap_or_else(|| UpdateState {
        revision: grace.revision.clone(),
        update_timestamp: Some(go_time(now)),
        update_env_from_metadata: !change.read.is_empty(),
        update_resources: !change.resources.is_empty(),
        update_images: !change.images.is_empty(),
        ..UpdateState::default()
    });
    let Applied { mut patch, resize } = go_on(&change, pod, state, now);
    drop_stale(&mut patch, pod, &GRACE);
    let reason = "its grace period is over";
    Progress::Due {
        resize,
        patch,
        reason,
    }
}

/// The next batch, if the containers of the one before are ready.
pub(super) fn next_batch(pod: &PodView, state: UpdateState, now: Timestamp) -> Progress {
    if let Some(name) = batch::awaited(&state, pod) {
        return Progress::Waiting(format!(
            "container {name} must be ready before the next containers change"
        ));
    }
    let Applied { patch, resize } = go_on(&batch::next(&state), pod, state, now);
    let reason = "the containers before them in the order are ready";
    Progress::Due {
        resize,
        patch,
        reason,
    }
}

fn go_on(change: &Change, pod: &PodView, mut state: UpdateState, now: Timestamp) -> Applied {
    let mut applied = batch::apply(change, pod, &mut state, &go_time(now));
    put(
        &mut applied.patch,
        &["metadata", "annotations", INPLACE_STATE],
        serialize(&state).into(),
    );
    drop_stale(&mut applied.patch, pod, &[INPLACE_STATE_LEGACY]);
    applied
}

const GRACE: [&str; 2] = [INPLACE_GRACE, INPLACE_GRACE_LEGACY];

/// Removes those of the annotations that the pod has.
fn drop_stale(patch: &mut Value, pod: &PodView, annotations: &[&str]) {
    for stale in annotations {
        if pod.annotations.get(stale).is_some() {
            put(patch, &["metadata", "annotations", stale], Value::Null);
        }
    }
}

#[cfg(test)]
mod tests {
    use kruise_api::names::{INPLACE_GRACE, INPLACE_STATE};
    use kruise_views::{ContainerStatusView, PodView};
    use serde_json::{Value, json};

    use crate::inplace::{
        Progress,
        fixture::{self, now},
        progress,
    };

    const STATE: &str = r#"{"revision":"web-b","updateTimestamp":"2026-01-02T03:04:00Z","lastContainerStatuses":null,"updateImages":true}"#;
    const GRACE: &str = r#"{"revision":"web-b","containerImages":{"main":"web:2"},"metaDataPatch":"eyJsYWJlbHMiOnsidGllciI6bnVsbH19","graceSeconds":SECONDS}"#;

    fn pod(seconds: i32, label: &str) -> PodView {
        let grace = GRACE.replace("SECONDS", &seconds.to_string());
        PodView {
            annotations: [(INPLACE_STATE, STATE), (INPLACE_GRACE, &grace)]
                .into_iter()
                .collect(),
            labels: [("controller-revision-hash", label)].into_iter().collect(),
            statuses: Box::new([ContainerStatusView {
                name: "main".into(),
                image_id: "id1".into(),
                ..ContainerStatusView::default()
            }]),
            ..fixture::pod()
        }
    }

    fn due(pod: &PodView) -> Value {
        match progress(pod, now()) {
            Progress::Due { patch, .. } => patch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_images_come_when_the_grace_period_is_over() {
        assert!(matches!(progress(&pod(10, "web-b"), now()), Progress::Grace(_)));
        let patch = due(&pod(4, "b"));
        assert_eq!(
            patch["spec"],
            json!({"containers": [{"name": "main", "image": "web:2"}]})
        );
        assert_eq!(patch["metadata"]["labels"], json!({"tier": null}));
        assert_eq!(patch["metadata"]["annotations"][INPLACE_GRACE], Value::Null);
        assert_eq!(
            patch["metadata"]["annotations"][INPLACE_STATE],
            r#"{"revision":"web-b","updateTimestamp":"2026-01-02T03:04:00Z","lastContainerStatuses":{"main":{"imageID":"id1"}},"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-01-02T03:04:05Z","containers":["main"]}]}"#
        );
    }

    #[test]
    fn a_grace_period_for_another_revision_is_dropped_and_changes_nothing() {
        assert_eq!(
            due(&pod(0, "web-c")),
            json!({"metadata": {"annotations": {INPLACE_GRACE: null}}})
        );
    }

    #[test]
    fn a_grace_period_whose_beginning_is_unknown_is_over() {
        let mut unknown = pod(10, "web-b");
        unknown.annotations = unknown.annotations.filtered(|key| key != INPLACE_STATE);
        assert_eq!(due(&unknown)["spec"]["containers"][0]["image"], "web:2");
    }
}
