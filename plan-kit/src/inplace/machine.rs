//! The state machine of an update in place. Its states are annotations of the pod, so every manager can continue an
//! update that another one began.
//!
//! - [`Update::Idle`]: no annotation. The pod waits for nothing, and is finished.
//! - [`Update::Grace`]: the progress, and the change that is held back. The pod waits for the end of its grace period.
//!   The first batch of containers changes then, and the state is `Changing`.
//! - [`Update::Changing`]: the progress alone. The pod waits until the changed containers run what they should
//!   ([`arrival`]), and until the report of its node can be trusted. If a batch is left, it waits until the changed
//!   containers are ready, too. The next batch changes then, and the state stays `Changing`. If none is left, the pod
//!   is finished.
//!
//! `begin` writes the first annotations, [`Update::step`] is every step in between, and `finish` is the last one.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::{INPLACE_GRACE, INPLACE_GRACE_LEGACY, INPLACE_STATE, INPLACE_STATE_LEGACY};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::{
    arrival,
    batch::{self, Applied},
    diff::Change,
    grace::{self, Grace},
    record::serialize,
    state::{UpdateState, read_state},
};
use crate::{availability, injected, lifecycle::go_time, put};

/// How far an in-place update is, and its next step where that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing under way, or everything arrived.
    Complete,
    /// Under way; in plain words, what it waits for.
    Waiting(String),
    /// Its grace period runs, for this much longer.
    Grace(Duration),
    /// Its containers run what they should, but their node may still report that those before them are ready, for
    /// this much longer.
    Settling(Duration),
    /// The next part of it is due.
    Due {
        /// Strategic merge patch of its containers' resources, to be made before the other one.
        resize: Option<Value>,
        /// Strategic merge patch of the pod, right for this very version of it.
        patch: Value,
        /// Why, in plain words.
        reason: &'static str,
    },
    /// The progress annotation cannot be read; the pod needs somebody's eyes. The parser's words.
    Unreadable(String),
}

/// Reads a pod's progress, and decides on the next step.
pub fn progress(pod: &PodView, now: Timestamp) -> Progress {
    Update::of(pod).map_or_else(Progress::Unreadable, |update| update.step(pod, now))
}

/// The states of an update.
pub(super) enum Update {
    /// The pod was never updated in place.
    Idle,
    /// The pod is out of service, and its change is held back.
    Grace {
        /// The change that is held back.
        held: Grace,
        /// Its progress; somebody may have removed it.
        record: Option<UpdateState>,
    },
    /// Containers were changed. After the last of them has arrived, this state stays until the next update.
    Changing(UpdateState),
}

impl Update {
    /// The state that a pod is in, or the parser's words if an annotation cannot be read.
    pub(super) fn of(pod: &PodView) -> Result<Self, String> {
        let record = read_state(pod)?;
        Ok(match grace::read(pod)? {
            Some(held) => Self::Grace { held, record },
            None => record.map_or(Self::Idle, Self::Changing),
        })
    }

    /// What the state waits for, or the step that leads out of it.
    fn step(self, pod: &PodView, now: Timestamp) -> Progress {
        match self {
            Self::Idle => Progress::Complete,
            Self::Grace { held, record } => end_grace(pod, &held, record, now),
            Self::Changing(record) => {
                if !injected::is_injected("ReadyBeforeCompletion") {
                    if let Some(why) = arrival::awaited(pod, &record) {
                        return Progress::Waiting(why);
                    }
                    if let Some(left) = availability::settling(pod, now) {
                        return Progress::Settling(left);
                    }
                }
                if record.has_next_batch() {
                    next_batch(pod, record, now)
                } else {
                    Progress::Complete
                }
            }
        }
    }
}

/// The step out of `Grace`: the change that was held back.
fn end_grace(pod: &PodView, held: &Grace, record: Option<UpdateState>, now: Timestamp) -> Progress {
    if !held.is_of_revision_of(pod) {
        let mut patch = json!({});
        drop_stale(&mut patch, pod, &GRACE);
        let reason = "its grace period was for another revision";
        return Progress::Due {
            resize: None,
            patch,
            reason,
        };
    }
    let since = record
        .as_ref()
        .and_then(|record| record.update_timestamp.as_deref());
    let left = grace::left(since, held.grace_seconds, now);
    if !left.is_zero() {
        return Progress::Grace(left);
    }
    let change = match held.change() {
        Ok(change) => change,
        Err(error) => return Progress::Unreadable(error),
    };
    // Without a record nobody knows when the period began: it is over.
    let record = record.unwrap_or_else(|| UpdateState {
        revision: held.revision.clone(),
        update_timestamp: Some(go_time(now)),
        update_env_from_metadata: !change.read.is_empty(),
        update_resources: !change.resources.is_empty(),
        update_images: !change.images.is_empty(),
        ..UpdateState::default()
    });
    let Applied { mut patch, resize } = apply(&change, pod, record, now);
    drop_stale(&mut patch, pod, &GRACE);
    let reason = "its grace period is over";
    Progress::Due {
        resize,
        patch,
        reason,
    }
}

/// The step from one batch to the next, if the containers of the one before are ready.
fn next_batch(pod: &PodView, record: UpdateState, now: Timestamp) -> Progress {
    if let Some(name) = batch::awaited(&record, pod) {
        return Progress::Waiting(format!(
            "container {name} must be ready before the next containers change"
        ));
    }
    let Applied { patch, resize } = apply(&batch::next(&record), pod, record, now);
    let reason = "the containers before them in the order are ready";
    Progress::Due {
        resize,
        patch,
        reason,
    }
}

/// Changes the first batch of what is left, and records it.
fn apply(change: &Change, pod: &PodView, mut record: UpdateState, now: Timestamp) -> Applied {
    let mut applied = batch::apply(change, pod, &mut record, &go_time(now));
    put(
        &mut applied.patch,
        &["metadata", "annotations", INPLACE_STATE],
        serialize(&record).into(),
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
