//! Updating single pods to a revision, in place or by recreation.

use std::{collections::BTreeMap, rc::Rc};

use kruise_api::{lifecycle::LifecycleHook, names::INPLACE_STATE};
use serde_json::{Value, json};

use super::{Drift, Pod, Policy, Rollout, Words, drift::as_it_is, interrupted, path::UpdatePath};
use crate::{
    Intent, events,
    history::revision::Revision,
    injected::is_injected,
    inplace::{Change, NotInPlace, Resize},
    ledger::Operation,
    lifecycle::{self, State},
    plan::{EventNote, FailureNote, ObjectWrites, Plan, Step, Why},
    pod_writes::{Guard, guard_by_version, patch},
    sidecars,
    write::Part,
};

/// Reports an update in place as CloneSets and StatefulSets do, given the names of the pod and of its new revision.
pub fn updated_in_place(pod: &str, revision: &str) -> Words {
    let named = format!("update pod {pod} in-place(revision {revision})");
    Words {
        done: EventNote::new(&events::SUCCESSFUL_IN_PLACE, format!("successfully {named}")),
        failed: FailureNote::new(&events::FAILED_IN_PLACE, format!("failed to {named}: ")),
    }
}

/// Updates pods to one revision; the path from each other revision is worked out once.
pub struct Updater<'r> {
    rollout: &'r Rollout<'r>,
    /// Where pods are updated to.
    pub target: &'r Revision,
    /// By revision label.
    paths: BTreeMap<String, Rc<Result<UpdatePath, NotInPlace>>>,
}

impl<'r> Updater<'r> {
    /// Updates pods to `target`.
    pub fn new(rollout: &'r Rollout<'r>, target: &'r Revision) -> Self {
        Self {
            rollout,
            target,
            paths: BTreeMap::new(),
        }
    }

    fn policy(&self) -> Policy {
        self.rollout.strategy.policy
    }

    /// Can this pod change in place, and may it?
    pub fn is_in_place(&mut self, pod: &Pod<'_>) -> bool {
        self.policy().is_in_place() && self.path(pod).is_ok()
    }

    /// Can each of these pods, if there is any, change in place?
    pub fn all_in_place<'m, 'p: 'm>(&mut self, mut pods: impl Iterator<Item = &'m Pod<'p>>) -> bool {
        self.policy().is_in_place() && pods.all(|pod| self.path(pod).is_ok())
    }

    /// Leaves out the candidates that cannot be updated, so that they do not take the place of others. The first is
    /// reported.
    pub fn able<'m, 'p>(&mut self, candidates: Vec<&'m Pod<'p>>, plan: &mut Plan) -> Vec<&'m Pod<'p>> {
        if !self.policy().is_in_place() {
            return candidates;
        }
        let mut able = Vec::with_capacity(candidates.len());
        let mut warned = false;
        for pod in candidates {
            let Some(text) = self.obstacle(pod) else {
                able.push(pod);
                continue;
            };
            if !warned {
                let failed = (self.rollout.in_place_words)(&pod.view.name, &self.target.name).failed;
                let message = format!("{}{text}", failed.prefix);
                plan.events
                    .push(EventNote::new(&events::FAILED_IN_PLACE, message));
            }
            warned = true;
            self.rollout.explain(plan, pod, text);
            plan.writes.extend(self.rollout.cancel(pod));
        }
        able
    }

    fn obstacle(&mut self, pod: &Pod<'_>) -> Option<String> {
        match &*self.path(pod) {
            Ok(_) if pod.state == State::Foreign => {
                Some("its lifecycle state is unknown to this build".into())
            }
            Err(blocked) if self.policy() == Policy::InPlaceOnly => Some(format!(
                "cannot be updated in place, and the policy is InPlaceOnly: {}",
                blocked.path
            )),
            _ => None,
        }
    }

    /// Does its budget let the pod be updated now, and does the server take what is to come in its place? Whoever
    /// chooses among pods asks first; [`Updater::run`] spares those that their budgets keep.
    pub fn may_update(&mut self, pod: &Pod<'_>, plan: &mut Plan) -> bool {
        let operation = self.operation(pod);
        let is_recreated = !self.is_in_place(pod) && self.policy() != Policy::InPlaceOnly;
        // A budget that is asked is charged.
        (!is_recreated || self.rollout.is_tried(pod, &self.target.name, plan))
            && self.rollout.is_let(pod, operation, plan)
    }

    /// What the update of a pod is for its budget; `None` if the pod stays in service, or nothing is to be written.
    fn operation(&mut self, pod: &Pod<'_>) -> Option<Operation> {
        if !self.is_in_place(pod) {
            let is_recreated = self.policy() != Policy::InPlaceOnly;
            return self.rollout.removal(pod).filter(|_| is_recreated);
        }
        let path = self.path(pod);
        let path = path.as_ref().as_ref().ok()?;
        let hook = self.rollout.update_hook();
        let held = lifecycle::holds(hook, pod.view);
        let of_hold = |hook: &LifecycleHook| {
            let marks = hook.mark_pod_not_ready.then_some(Operation::Update);
            marks.or_else(|| path.change.operation())
        };
        match pod.state {
            State::None | State::PreparingNormal | State::Normal if held => hook.and_then(of_hold),
            State::PreparingUpdate if held => None,
            State::Updated => hook.and_then(of_hold),
            State::None
            | State::PreparingNormal
            | State::Normal
            | State::PreparingUpdate
            | State::Updating => {
                let own = self.path_of_its_own(pod, path);
                own.as_ref().unwrap_or(path).change.operation()
            }
            State::PreparingDelete | State::Foreign => None,
        }
    }

    /// Updates the pods.
    pub fn run(&mut self, pods: Vec<&Pod<'_>>, plan: &mut Plan) {
        for pod in pods {
            if !self.may_update(pod, plan) {
                continue;
            }
            if !self.policy().is_in_place() {
                let reason = "the template changed and the policy is ReCreate";
                plan.writes
                    .extend(self.rollout.recreate(pod, &self.target.name, reason));
                continue;
            }
            match &*self.path(pod) {
                Ok(path) => self.update_in_place(pod, path, plan),
                Err(blocked) => {
                    let reason = format!("{} cannot change in place", blocked.path);
                    plan.writes
                        .extend(self.rollout.recreate(pod, &self.target.name, &reason));
                }
            }
        }
    }

    /// The path of a pod's revision, or of a pod that runs something else.
    fn path(&mut self, pod: &Pod<'_>) -> Rc<Result<UpdatePath, NotInPlace>> {
        if matches!(pod.drift, Drift::Interrupted | Drift::Old) {
            return Rc::new(self.work_out_of(pod));
        }
        let label = pod.label();
        if let Some(known) = self.paths.get(label) {
            return Rc::clone(known);
        }
        let path = Rc::new(self.work_out(label));
        self.paths.insert(label.to_owned(), Rc::clone(&path));
        path
    }

    fn work_out(&self, label: &str) -> Result<UpdatePath, NotInPlace> {
        let old = self.stored(label)?;
        let change = self.rollout.change_between(old, self.target)?;
        Ok(UpdatePath::of(change))
    }

    /// The path of a pod that does not run what its revision asks for: from what it runs.
    fn work_out_of(&self, pod: &Pod<'_>) -> Result<UpdatePath, NotInPlace> {
        let old = self.stored(pod.label())?;
        let template = as_it_is(old.template.canonical(), pod.view, self.rollout.lifecycle);
        let change = self.rollout.change_from(&template, old, self.target)?;
        let mut path = UpdatePath::of(change);
        path.reason.push_str(", which an update before left out");
        Ok(path)
    }

    fn stored(&self, label: &str) -> Result<&'r Revision, NotInPlace> {
        let target = Some(self.target).filter(|target| target.labels(label));
        let stored = self.rollout.history.by_label(label).or(target);
        stored.ok_or_else(|| NotInPlace {
            path: "its revision is gone, so the difference".into(),
        })
    }

    /// Begins the update of a pod to its own revision, this target, anew.
    fn begin_anew(&self, pod: &Pod<'_>) -> Option<ObjectWrites> {
        let path = self.work_out_of(pod).ok()?;
        let path = self.path_of_its_own(pod, &path).unwrap_or(path);
        (!path.change.is_empty()).then(|| self.start(pod, &path))
    }

    /// Gives a pod of the target the resources back that it should have. Not where that restarts what a hook asks to be
    /// drained before: the hook is about updates from one revision to another. Nor where its budget keeps the pod.
    pub(super) fn give_back(
        &self,
        pod: &Pod<'_>,
        resources: BTreeMap<String, Resize>,
    ) -> Option<ObjectWrites> {
        let change = Change {
            gives_back: true,
            ..UpdatePath::of_resources(resources)
        };
        let asks_first = change.restarts() && self.rollout.update_hook().is_some();
        let mut path = UpdatePath::of(change);
        path.reason = "an update broke off: resources of its revision".into();
        let operation = path.change.operation().filter(|_| !asks_first);
        let is_kept =
            operation.is_some_and(|operation| self.rollout.charges.ask(pod.view, operation).is_err());
        (!asks_first && !is_kept).then(|| self.start(pod, &path))
    }

    /// The path of a pod for which that of its revision is not right as it is, if this is one.
    fn path_of_its_own(&self, pod: &Pod<'_>, path: &UpdatePath) -> Option<UpdatePath> {
        let own = self.with_what_it_lacks(pod, path);
        let change = &own.as_ref().unwrap_or(path).change;
        let injected = sidecars::injected(pod.view);
        let mut names = change.images.keys().chain(change.resources.keys());
        if !names.any(|name| injected.contains(name)) {
            return own;
        }
        // They are changed by their SidecarSet, which took the place of the template's for them.
        let mut change = change.clone();
        change.images.retain(|name, _| !injected.contains(name));
        change.resources.retain(|name, _| !injected.contains(name));
        Some(UpdatePath::of(change))
    }

    /// The path of a pod that asks for what an update left behind when it broke off, if this is one.
    fn with_what_it_lacks(&self, pod: &Pod<'_>, path: &UpdatePath) -> Option<UpdatePath> {
        let resources = interrupted::lacking(self.rollout, pod.view, self.target);
        if resources.is_empty() {
            return None;
        }
        let change = path.change.clone().over(UpdatePath::of_resources(resources));
        (change != path.change).then(|| UpdatePath::of(change))
    }

    fn update_in_place(&self, pod: &Pod<'_>, path: &UpdatePath, plan: &mut Plan) {
        let hook = self.rollout.update_hook();
        let held = lifecycle::holds(hook, pod.view);
        match pod.state {
            State::None | State::PreparingNormal | State::Normal if held => {
                let reason = "its inPlaceUpdate hook is asked first";
                plan.writes.push(self.hold(pod, None, reason));
            }
            State::PreparingUpdate if held => {
                let text = "waits: its inPlaceUpdate hook holds it";
                plan.why.push(Why::new(&*pod.view.name, text));
            }
            State::Updated => {
                if let Some(hook) = hook {
                    let reason = "updated again: its hook is asked anew";
                    plan.writes.push(self.hold(pod, Some(hook), reason));
                }
            }
            State::None
            | State::PreparingNormal
            | State::Normal
            | State::PreparingUpdate
            | State::Updating => {
                let own = self.path_of_its_own(pod, path);
                plan.writes.push(self.start(pod, own.as_ref().unwrap_or(path)));
            }
            State::PreparingDelete | State::Foreign => {}
        }
    }

    /// Moves a pod to `PreparingUpdate`, putting the hook back on it if asked.
    fn hold(&self, pod: &Pod<'_>, rehook: Option<&LifecycleHook>, reason: &str) -> ObjectWrites {
        let labels: Vec<[&str; 2]> = rehook
            .iter()
            .flat_map(|hook| hook.labels_handler.keys().map(|key| ["labels", key.as_str()]))
            .collect();
        let values = rehook.iter().flat_map(|hook| hook.labels_handler.values());
        let mut further: Vec<(&[&str], Value)> = labels
            .iter()
            .map(<[&str; 2]>::as_slice)
            .zip(values.map(|value| value.as_str().into()))
            .collect();
        let finalizers = rehook.map_or(&[][..], |hook| &hook.finalizers_handler);
        if !finalizers.is_empty() {
            further.push((&["finalizers"], json!(finalizers)));
        }
        let next = (Intent::SET_LIFECYCLE, State::PreparingUpdate);
        ObjectWrites::of_pod(vec![self.rollout.enter(pod, next, &further, reason)])
    }

    fn start(&self, pod: &Pod<'_>, path: &UpdatePath) -> ObjectWrites {
        let view = pod.view;
        let patches = path.spec(self.rollout, self.target).patches_of(view);
        let reason = path.reason.as_str();
        let mut steps = Vec::new();
        if let Some(unready) = patches.unready {
            // The pod's own condition is the kubelet's: it is lowered only where nothing is newer than what was seen.
            let guard = if unready.set.is_empty() {
                Guard::SamePod
            } else {
                Guard::Unchanged
            };
            let (intent, part) = (Intent::MARK_UNREADY, Part::Status);
            steps.push(patch(view, intent, part, unready, guard, reason));
        }
        let Words { done, failed } = (self.rollout.in_place_words)(&view.name, &self.target.name);
        // A resize and the write that records it are two: late ones, of a manager that leads no more, must not take
        // apart what another one has done since.
        let resizes = patches.resize.is_some() || !path.change.resources.is_empty();
        let resize = patches.resize.map(|resize| {
            let (intent, part) = (Intent::RESIZE_POD, Part::Resize);
            let mut step = patch(view, intent, part, resize, Guard::SamePod, reason);
            step.failed = Some(failed.clone());
            step
        });
        let (intent, part) = (Intent::UPDATE_IN_PLACE, Part::Main);
        let mut step = patch(view, intent, part, patches.update, Guard::SamePod, reason);
        step.done = Some(done);
        step.failed = Some(failed);
        let mut change: Vec<Step> = resize.into_iter().chain([step]).collect();
        if is_injected("ResizeAfterPodWrite") {
            change.reverse();
        }
        steps.extend(change);
        // What containers run is recorded as the snapshot has it, and a new container is the sign that they
        // changed: one that crashed in between would be taken for it.
        let restarts = pod.state == State::Updating || !self.rollout.options.restart_labels;
        let changing = restarts && view.annotations.get(INPLACE_STATE).is_some();
        if changing || resizes || !path.change.images.is_empty() {
            guard_by_version(&mut steps, view);
        }
        ObjectWrites::of_pod(steps)
    }
}

/// Begins the update of a pod to its own revision anew, whose record is lost. It is out of service for it already.
pub(super) fn begin_anew(rollout: &Rollout<'_>, pod: &Pod<'_>) -> Option<ObjectWrites> {
    let label = pod.label();
    let revision = if rollout.update.labels(label) {
        &rollout.update
    } else {
        rollout.history.by_label(label)?
    };
    Updater::new(rollout, revision).begin_anew(pod)
}

impl Rollout<'_> {
    /// Takes a pod out of `PreparingUpdate` whose update is no longer wanted (the partition grew, another pod took its
    /// place). It would stay out of service for good, so it goes back the way an updated pod does.
    pub fn cancel(&self, pod: &Pod<'_>) -> Option<ObjectWrites> {
        (pod.state == State::PreparingUpdate).then(|| {
            let next = (Intent::SET_LIFECYCLE, self.after_update(pod));
            let step = self.enter(pod, next, &[], "its update is no longer wanted");
            ObjectWrites::of_pod(vec![step])
        })
    }
}
