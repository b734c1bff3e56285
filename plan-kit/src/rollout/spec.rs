//! What a specification says about updating pods.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::{
    lifecycle::{Lifecycle, LifecycleHook},
    priority::PriorityStrategy,
    scatter::ScatterTerm,
};
use kruise_views::PodView;
use serde_json::{Value, json};

use crate::{
    Intent,
    history::{History, revision::Revision},
    inplace::VerticalScaling,
    ledger::{Ask, Operation},
    lifecycle::{self, State},
    owner::Owner,
    plan::{Explain, Plan, Step, Why},
    pod_writes::{Guard, patch},
    put, readiness,
    trial::Trying,
    write::Part,
};

use super::{
    pod::Pod,
    policy::Policy,
    words::{Deletions, Words},
};

/// What a specification says about updating pods, and the workload it belongs to.
pub struct Rollout<'a> {
    /// The workload.
    pub owner: Owner<'a>,
    /// Which pods may change, how, and in which order.
    pub strategy: Strategy<'a>,
    /// How many pods there are to be, and may be missing.
    pub budget: Budget,
    /// Lifecycle hooks.
    pub lifecycle: Option<&'a Lifecycle>,
    /// Feature gates.
    pub options: Options,
    /// Being rolled out.
    pub update: Revision,
    /// Last rolled out in full.
    pub current: Revision,
    /// All that are stored.
    pub history: History,
    /// How the kind deletes its pods.
    pub deletions: &'static Deletions,
    /// Reports an update in place, given the names of the pod and of its new revision.
    pub in_place_words: fn(&str, &str) -> Words,
    /// Writes that follow the deletion of a pod, such as those of its claims.
    pub after_deletion: &'a dyn Fn(&PodView) -> Vec<Step>,
    /// The budgets of its pods.
    pub charges: &'a dyn Ask,
    /// Whether the server takes pods of the update revision.
    pub trying: Trying<'a>,
    /// How often the server has refused writes of a pod, by its uid ([`Memory::refused`](crate::Memory::refused)).
    pub refused: &'a BTreeMap<String, u32>,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
    /// The instant of the plan.
    pub now: Timestamp,
}

/// Which pods may change, how, and in which order.
#[derive(Clone, Copy, Debug)]
pub struct Strategy<'a> {
    /// Pods change only when somebody deletes them.
    pub on_delete: bool,
    /// No pod changes.
    pub paused: bool,
    /// In place or by new pods.
    pub policy: Policy,
    /// What pods get between readiness off and the change.
    pub grace_seconds: i32,
    /// Which pods go first.
    pub priority: Option<&'a PriorityStrategy>,
    /// Labels whose pods do not change one after another.
    pub scatter: &'a [ScatterTerm],
}

impl Strategy<'_> {
    /// Why no pod is updated.
    pub fn held(&self) -> Option<&'static str> {
        if self.on_delete {
            return Some("not updated: the strategy is OnDelete");
        }
        self.paused.then_some("not updated: the update is paused")
    }

    /// Are pods updated in place?
    pub fn updates_in_place(&self) -> bool {
        self.held().is_none() && self.policy.is_in_place()
    }
}

/// The limits of a rollout, as numbers of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Wanted.
    pub replicas: i32,
    /// Kept on old revisions.
    pub partition: i32,
    /// May be out of service.
    pub max_unavailable: i32,
    /// May change at once, where nothing else limits that.
    pub at_once: i32,
}

/// Feature gates that change how pods are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The revision label carries the hash only.
    pub short_hash: bool,
    /// A pod whose containers restart has a lifecycle label while they do. Without, its readiness gate alone
    /// reports it.
    pub restart_labels: bool,
    /// Updated pods may be taken back to the current revision: whether a pod that is held on its way is still to go, is
    /// decided where pods are chosen.
    pub goes_back: bool,
    /// A node agent restarts containers whose environment reads a changed label or annotation, and reports it.
    pub environment_from_metadata: bool,
    /// Resources of running containers change in place.
    pub vertical_scaling: VerticalScaling,
    /// Pods of other claim templates are not updated in place.
    pub recreate_for_claims: bool,
    /// Pods have the label `pod-template-hash`.
    pub template_hash: bool,
}

impl Rollout<'_> {
    /// Value of the revision label.
    pub fn label_of<'r>(&self, revision: &'r Revision) -> &'r str {
        if self.options.short_hash {
            &revision.hash
        } else {
            &revision.name
        }
    }

    /// Explains why a pod is as it is, if that is wanted.
    pub fn explain(&self, plan: &mut Plan, pod: &Pod<'_>, text: impl Into<String>) {
        if self.explain == Explain::Yes {
            plan.why.push(Why::new(&*pod.view.name, text));
        }
    }

    /// Puts pods whose writes the server refuses last, and leaves the others in their order: a limit that such pods
    /// use up keeps the others waiting for ever.
    pub fn put_refused_last<T>(&self, pods: &mut [T], view: impl Fn(&T) -> &PodView) {
        if !self.refused.is_empty() {
            pods.sort_by_key(|pod| self.refused.get(&*view(pod).uid).copied().unwrap_or(0));
        }
    }

    /// Asks the budget of a pod for this operation, and explains what keeps the pod.
    pub(super) fn is_let(&self, pod: &Pod<'_>, operation: Option<Operation>, plan: &mut Plan) -> bool {
        let Some(operation) = operation else {
            return true;
        };
        let outcome = self.charges.ask(pod.view, operation);
        outcome.map_err(|why| self.explain(plan, pod, why)).is_ok()
    }

    pub(super) fn update_hook(&self) -> Option<&LifecycleHook> {
        self.lifecycle?.in_place_update.as_ref()
    }

    /// The state that a pod enters once nothing is left to update: `Normal`, or `Updated` until its hook is back.
    pub fn after_update(&self, pod: &Pod<'_>) -> State {
        let hook = self.update_hook();
        if hook.is_some() && !lifecycle::fully_hooked(hook, pod.view) {
            State::Updated
        } else {
            State::Normal
        }
    }

    /// Moves a pod to another lifecycle state, with these further members of `metadata`. Hooks that mark pods put
    /// it out of service, or let it back, in the same request.
    pub fn enter(
        &self,
        pod: &Pod<'_>,
        (intent, next): (Intent, State),
        further: &[(&[&str], Value)],
        reason: impl Into<String>,
    ) -> Step {
        let mut metadata = next.metadata(self.now);
        for (path, value) in further {
            put(&mut metadata, path, value.clone());
        }
        let conditions = readiness::settle(pod.view, next, self.lifecycle, self.now);
        if conditions.is_empty() {
            let body = json!({"metadata": metadata});
            return patch(pod.view, intent, Part::Main, body, Guard::SamePod, reason);
        }
        let body = json!({"metadata": metadata, "status": {"conditions": conditions}});
        patch(pod.view, intent, Part::Status, body, Guard::Unchanged, reason)
    }
}
