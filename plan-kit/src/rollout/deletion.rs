//! Deleting a pod, or holding it where its `preDelete` hook asks for that.

use kruise_api::names::SPECIFIED_DELETE;
use serde_json::Value;

use super::{Pod, Rollout, Words};
use crate::{
    Intent,
    history::revision::Revision,
    ledger::Operation,
    lifecycle::{self, State},
    need::Need,
    plan::{ObjectWrites, Plan, Step},
    pod_writes::{self, Guard},
    trial::{PodTrial, Role, Wanted},
};

impl Rollout<'_> {
    /// Does a `preDelete` hook hold the pod?
    pub fn is_held(&self, pod: &Pod<'_>) -> bool {
        let hook = self.lifecycle.and_then(|hooks| hooks.pre_delete.as_ref());
        lifecycle::holds(hook, pod.view)
    }

    /// Does its budget let the pod go? Nothing is asked for one that is held in `PreparingDelete` already. Whoever
    /// chooses among pods asks first; [`Rollout::remove`] and [`Rollout::recreate`] spare a pod that its budget
    /// keeps.
    pub fn may_remove(&self, pod: &Pod<'_>, plan: &mut Plan) -> bool {
        self.is_let(pod, self.removal(pod), plan)
    }

    /// May the pod be deleted, so that it comes back on the revision of this name? The server takes such pods, and
    /// its budget lets it go. Whoever recreates a pod asks first.
    pub fn may_recreate(&self, pod: &Pod<'_>, revision: &str, plan: &mut Plan) -> bool {
        // A budget that is asked is charged.
        self.is_tried(pod, revision, plan) && self.may_remove(pod, plan)
    }

    /// Does the server take pods of the revision of this name?
    pub(super) fn is_tried(&self, pod: &Pod<'_>, revision: &str, plan: &mut Plan) -> bool {
        let tried = self.trying.ask(&pod.view.name, revision);
        tried.map_err(|why| self.explain(plan, pod, why)).is_ok()
    }

    /// What the plan has to know of the server first, if it is to delete a pod for the update revision; nothing
    /// else is done before. `make` makes a pod of a revision in the place of the pod of this name.
    pub fn trial(&self, make: impl FnOnce(&Revision, &str) -> Value) -> Option<Plan> {
        let Wanted { role, pod } = self.trying.wanted()?;
        let revision = match role {
            Role::Update => &self.update,
            Role::Control => &self.current,
        };
        let trial = PodTrial {
            namespace: self.owner.namespace.to_owned(),
            revision: self.update.name.clone(),
            role,
            pod: make(revision, &pod).to_string(),
        };
        Some(Plan {
            needs: vec![Need::Trial(Box::new(trial))],
            ..Plan::default()
        })
    }

    /// What the removal of a pod is for its budget; `None` if nothing is to be written.
    pub(super) fn removal(&self, pod: &Pod<'_>) -> Option<Operation> {
        let waits = pod.state == State::PreparingDelete && self.is_held(pod);
        (!waits).then_some(Operation::Delete)
    }

    fn is_kept(&self, pod: &Pod<'_>) -> bool {
        let operation = self.removal(pod);
        operation.is_some_and(|operation| self.charges.ask(pod.view, operation).is_err())
    }

    /// Deletes a pod, or moves it to `PreparingDelete` while its hook holds it; `None` if it is there, or its
    /// budget keeps it.
    pub fn remove(&self, pod: &Pod<'_>, reason: &str) -> Option<ObjectWrites> {
        if self.is_kept(pod) {
            return None;
        }
        if self.is_held(pod) {
            return self.prepare(pod, reason);
        }
        let words = (self.deletions.removed)(&self.owner, &pod.view.name);
        Some(self.delete(pod, words, reason))
    }

    /// Deletes a pod so that it comes back on the revision of this name, or holds it as [`Rollout::remove`] does;
    /// `None` if nothing is to be written, or its budget keeps the pod.
    pub fn recreate(&self, pod: &Pod<'_>, revision: &str, reason: &str) -> Option<ObjectWrites> {
        if self.is_kept(pod) {
            return None;
        }
        let name = &pod.view.name;
        if !self.is_held(pod) {
            let words = (self.deletions.recreated)(&self.owner, name, revision);
            return Some(self.delete(pod, words, reason));
        }
        let Some(requested) = self.deletions.requested else {
            return self.prepare(pod, reason);
        };
        let asked: (&[&str], Value) = (&["labels", SPECIFIED_DELETE], "true".into());
        let next = (Intent::REQUEST_DELETE, State::PreparingDelete);
        let step = self.enter(pod, next, &[asked], asked_first(reason));
        Some(ObjectWrites::of_pod(vec![reported(
            step,
            requested(&self.owner, name, revision),
        )]))
    }

    /// Moves a held pod to `PreparingDelete`, unless it is there.
    fn prepare(&self, pod: &Pod<'_>, reason: &str) -> Option<ObjectWrites> {
        let next = (Intent::SET_LIFECYCLE, State::PreparingDelete);
        (pod.state != State::PreparingDelete)
            .then(|| ObjectWrites::of_pod(vec![self.enter(pod, next, &[], asked_first(reason))]))
    }

    /// The deletion, and what follows it.
    fn delete(&self, pod: &Pod<'_>, words: Words, reason: &str) -> ObjectWrites {
        let deletion = pod_writes::delete(pod.view, Guard::SamePod, reason);
        let mut steps = vec![reported(deletion, words)];
        steps.extend((self.after_deletion)(pod.view));
        ObjectWrites::of_pod(steps)
    }
}

fn reported(mut step: Step, words: Words) -> Step {
    step.done = Some(words.done);
    step.failed = Some(words.failed);
    step
}

fn asked_first(reason: &str) -> String {
    format!("{reason}; its preDelete hook is asked first")
}
