//! Deleting a pod, or holding it where its `preDelete` hook asks for that.

use kruise_api::names::SPECIFIED_DELETE;
use serde_json::Value;

use super::{Pod, Rollout};
use crate::{
    events,
    lifecycle::{self, State},
    plan::{EventNote, FailureNote, ObjectWrites, Step},
    pod_writes::{self, Guard},
    write::Intent,
};

impl Rollout<'_> {
    fn is_held(&self, pod: &Pod<'_>) -> bool {
        let hook = self.lifecycle.and_then(|hooks| hooks.pre_delete.as_ref());
        lifecycle::holds(hook, pod.view)
    }

    /// Deletes a pod, or moves it to `PreparingDelete` while its hook holds it; `None` if it is there.
    pub fn remove(&self, pod: &Pod<'_>, reason: &str) -> Option<ObjectWrites> {
        if !self.is_held(pod) {
            let name = &pod.view.name;
            let mut step = pod_writes::delete(pod.view, Guard::SamePod, reason);
            step.done = Some(EventNote::new(
                &events::SUCCESSFUL_DELETE,
                format!("succeed to delete pod {name}"),
            ));
            step.failed = Some(FailureNote::new(
                &events::FAILED_DELETE,
                format!("failed to delete pod {name}: "),
            ));
            return Some(self.for_good(pod, step));
        }
        let next = (Intent::SetLifecycle, State::PreparingDelete);
        (pod.state != State::PreparingDelete)
            .then(|| ObjectWrites::of_pod(vec![self.enter(pod, next, &[], asked_first(reason))]))
    }

    /// Deletes a pod so that it comes back on the revision of this name. A held pod is labelled for deletion instead, so that
    /// a shortage of pods does not bring it back into service; the event says which of the two happened.
    pub fn recreate(&self, pod: &Pod<'_>, revision: &str, reason: &str) -> ObjectWrites {
        let name = &pod.view.name;
        let held = self.is_held(pod);
        let update = format!("for update(revision {revision})");
        let (mut step, done, failed) = if held {
            let asked: (&[&str], Value) = (&["labels", SPECIFIED_DELETE], "true".into());
            let next = (Intent::RequestDelete, State::PreparingDelete);
            (
                self.enter(pod, next, &[asked], asked_first(reason)),
                format!("successfully patch pod {name} specified-delete {update}"),
                format!("failed to patch pod specified-delete {name} {update}: "),
            )
        } else {
            (
                pod_writes::delete(pod.view, Guard::SamePod, reason),
                format!("successfully delete pod {name} to recreate it {update}"),
                format!("failed to delete pod {name} {update}: "),
            )
        };
        step.done = Some(EventNote::new(&events::SUCCESSFUL_RECREATE, done));
        step.failed = Some(FailureNote::new(&events::FAILED_RECREATE, failed));
        if held {
            ObjectWrites::of_pod(vec![step])
        } else {
            self.for_good(pod, step)
        }
    }

    /// A deletion, and what follows it: the workload wants no pod in this place again.
    fn for_good(&self, pod: &Pod<'_>, deletion: Step) -> ObjectWrites {
        let mut steps = vec![deletion];
        steps.extend((self.after_deletion)(pod.view));
        ObjectWrites::of_pod(steps)
    }
}

fn asked_first(reason: &str) -> String {
    format!("{reason}; its preDelete hook is asked first")
}
