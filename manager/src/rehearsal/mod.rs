//! `kruise manager --dry-run` beside the manager of a cluster: what this build would do to pods, compared with what
//! becomes of them.
//!
//! # How it works
//! The caches follow the cluster, which the other manager changes, and each object is planned again when they
//! change. These plans come too late to judge a fast manager: the cache may have its write already, and a plan of
//! that state does not contain it. So each event of a pod that says that it was created, deleted or updated in
//! place is looked at *before* the cache has it: its owner is planned from the state that the write left, and the
//! write agrees if that plan has it. So is an event that takes a pod out of service: what a manager does in several
//! writes is decided before the first one. [`matcher`] has the rules for caches that follow at different speeds.
//! Sidecars of a pod are upgraded by what injected them: its plan judges that, also in pods of others.
//!
//! # What it promises
//! - Nothing is written.
//! - Every write that an event shows agrees, differs, or is counted as not compared. Of pods that no object of ours
//!   owns, only updates in place count, and what a plan has.
//! - What it remembers is bounded, but for what the cluster has: of differences, a number is listed, and those
//!   beyond are counted.
//!
//! # What is not here
//! Writes that do not decide what becomes of pods: revisions, claims, labels, conditions, status. Resources of
//! containers, which other programs change, too. Changes that a new list shows, after a watch has ended: a list has
//! no order.

mod acts;
mod claims;
mod differences;
mod matcher;
mod owner;
mod report;
mod standing;
#[cfg(test)]
mod tests;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kruise_frame::{
    caches::{NAMESPACES, PODS},
    registration::{Built, Registration, Runnable},
};
use kruise_kinds::pod_marks::{INJECTOR, injectors};
use kruise_plan_kit::Plan;
use kruise_runtime::{
    caches::Caches,
    events::ObjectRef,
    worker::{DryRun, ObjectState},
};
use kruise_views::{OwnerView, PodView};
use kube_cache::{Event, ObjectKey, SharedInformer, Version};
use tokio::time::Instant;

use super::printed::Printed;
use acts::{Fate, Seen, Traits, Wish, is_first_step, seen, wishes};
use matcher::{Before, FirstStep, Matcher, Namespace};
use owner::Owner;

/// A rehearsal. It prints what it would write, as [`Printed`] does, and compares.
pub struct Rehearsal {
    printed: Printed,
    began: Instant,
    matcher: Mutex<Matcher>,
    process: OnceLock<Process>,
    /// Controllers that have not planned each of their objects once.
    passes: AtomicUsize,
}

/// The process that plans.
struct Process {
    controllers: Vec<(&'static Registration, Weak<dyn Runnable>)>,
    pods: SharedInformer<PodView>,
}

impl Process {
    /// The controller of this owner, if it is one of ours.
    fn controller(&self, group: &str, kind: &str) -> Option<(&'static Registration, Arc<dyn Runnable>)> {
        let mut controllers = self.controllers.iter();
        let is_of = |registration: &Registration| {
            (registration.kind).is_some_and(|of| of.group == group && of.kind == kind)
        };
        let (registration, controller) = controllers.find(|(registration, _)| is_of(registration))?;
        Some((registration, controller.upgrade()?))
    }

    fn traits(&self, namespace: &str, name: &str) -> Option<Traits> {
        let pod = self.pods.snapshot().get(&ObjectKey::new(namespace, name))?;
        Some(Traits::of(&pod))
    }
}

impl Rehearsal {
    /// A rehearsal that begins now.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            printed: Printed::default(),
            began: Instant::now(),
            matcher: Mutex::default(),
            process: OnceLock::new(),
            passes: AtomicUsize::new(0),
        })
    }

    /// Looks at each event of a pod before its cache has it. Called once, before the watches begin.
    pub(super) fn attach(self: &Arc<Self>, built: &Built, caches: &mut Caches) {
        let pods = caches.informer(&PODS);
        let controllers = built.registered();
        let process = Process {
            controllers: controllers
                .map(|(registration, controller)| (registration, Arc::downgrade(controller)))
                .collect(),
            pods: pods.clone(),
        };
        let _is_first = self.process.set(process);
        let this = Arc::downgrade(self);
        pods.before_each(move |event| {
            if let Some(this) = this.upgrade() {
                this.coming(event);
            }
        });
        let this = Arc::downgrade(self);
        // Followed if a controller reads them.
        caches.on_change(&NAMESPACES, move |delta| {
            if let Some((this, namespace)) = this.upgrade().zip(delta.latest()) {
                let state = match &delta.new {
                    None => Namespace::Gone,
                    Some(new) if new.is_terminating() => Namespace::Ends,
                    Some(_) => Namespace::Stays,
                };
                let version = Version::of(&**namespace);
                this.matcher()
                    .namespace(namespace.name(), state, version, this.now());
            }
        });
    }

    /// What was found, and whether there are differences.
    pub(super) fn result(&self) -> (String, bool) {
        let report = self.matcher().report(self.now());
        let differs = !report.differences.is_empty() || report.more > 0;
        (report.to_string(), differs)
    }

    fn matcher(&self) -> MutexGuard<'_, Matcher> {
        self.matcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn wishes(&self, plan: &Plan) -> Vec<Wish> {
        let process = self.process.get();
        wishes(plan, |namespace, name| process?.traits(namespace, name))
    }

    /// An event of a pod is about to be applied.
    fn coming(&self, event: &Event<PodView>) -> Option<()> {
        let (new, is_gone) = match event {
            Event::Added(pod) | Event::Modified(pod) => (pod, false),
            Event::Deleted(pod) => (pod, true),
            Event::ListStarted | Event::ListDone { .. } => {
                self.matcher().interrupted(self.now());
                return None;
            }
            Event::Page(_) | Event::Bookmark(_) => return None,
        };
        let process = self.process.get()?;
        let (old, is_replay) = {
            let pods = process.pods.snapshot();
            let old = pods.get(&ObjectKey::of(new)).filter(|old| old.uid == new.uid);
            (
                old,
                Version::of(new).is_some_and(|new| Some(new) <= pods.observed()),
            )
        };
        if is_replay {
            return None;
        }
        let seen = seen(old.as_deref(), new, is_gone);
        let is_first_step = (old.as_deref()).is_some_and(|old| !is_gone && is_first_step(old, new));
        // What is done to this pod may be the first of several writes.
        let goes_on = is_first_step || seen.as_ref().is_some_and(|seen| seen.fate == Fate::Updated);
        if seen.is_none() && !goes_on {
            return None;
        }
        if let Some(seen) = seen.as_ref().filter(|seen| seen.injector.is_some()) {
            return self.upgraded(process, new, seen);
        }
        let owner = new.controller.as_deref();
        let ours = owner.and_then(|owner| Some((owner, process.controller(&owner.group, &owner.kind)?)));
        let Some((owner, controller)) = ours else {
            self.elsewhere(new, &seen?);
            return None;
        };
        self.of_ours(owner, controller, new, (seen, goes_on))
    }

    /// Something was done to a pod of an object of ours. It may be the first of several writes, if it goes on.
    fn of_ours(
        &self,
        owner: &OwnerView,
        (registration, controller): (&'static Registration, Arc<dyn Runnable>),
        pod: &PodView,
        (seen, goes_on): (Option<Seen>, bool),
    ) -> Option<()> {
        let key = ObjectKey::new(pod.namespace.clone(), owner.name.clone());
        let planned = plan(registration, &*controller, &key);
        let Some((about, plan)) = planned.filter(|(about, _)| *about.uid == *owner.uid) else {
            let seen = seen?;
            let verdict = self.matcher().seen_without_owner(&owner.kind, &seen);
            tracing::debug!(%key, pod = seen.pod, fate = ?seen.fate, ?verdict, "compared without an owner");
            return None;
        };
        let wishes = plan.needs.is_empty().then(|| self.wishes(&plan));
        let kind = &owner.kind;
        let owner = Owner {
            controller: registration.name,
            key,
        };
        if goes_on {
            let of_pod = wishes.iter().flatten().filter(|wish| *wish.pod == *pod.name);
            let of_pod = of_pod.cloned().collect();
            let step = FirstStep {
                pod: &pod.name,
                version: Version::of(pod),
            };
            self.matcher().begins(&owner, step, of_pod, self.now());
        }
        let before = Before {
            kind,
            version: about.resource_version.parse().ok(),
            wishes: wishes.as_deref(),
        };
        self.compared(&owner, &before, seen?);
        Some(())
    }

    /// Sidecars in a pod were upgraded, whoever owns the pod.
    fn upgraded(&self, process: &Process, pod: &PodView, seen: &Seen) -> Option<()> {
        let ours = process.controller(INJECTOR.group, INJECTOR.kind);
        let Some((registration, controller)) = ours else {
            self.elsewhere(pod, seen);
            return None;
        };
        let owner = Owner {
            controller: registration.name,
            key: ObjectKey::new("", seen.injector.as_deref()?),
        };
        // Of several that share a pod, one waits for the other, and the order says nothing.
        let seen = Seen {
            is_of_sidecars: injectors(pod).nth(1).is_some(),
            ..seen.clone()
        };
        // A plan is large where there are many pods: one that was made already does, if it has this.
        let is_wanted = self.matcher().is_wanted(&owner, &seen, self.now());
        let planned = (!is_wanted).then(|| plan(registration, &*controller, &owner.key));
        let planned = planned.flatten();
        let wishes = planned.as_ref().filter(|(_, plan)| plan.needs.is_empty());
        let wishes = wishes.map(|(_, plan)| self.wishes(plan));
        let version = planned.and_then(|(about, _)| about.resource_version.parse().ok());
        let before = Before {
            kind: INJECTOR.kind,
            version,
            wishes: wishes.as_deref(),
        };
        self.compared(&owner, &before, seen);
        Some(())
    }

    /// Something was done to a pod that no object of ours owns.
    fn elsewhere(&self, pod: &PodView, seen: &Seen) {
        let has_sidecars = injectors(pod).next().is_some();
        let kind = if has_sidecars { INJECTOR.kind } else { "Pod" };
        let verdict = self.matcher().seen_elsewhere(kind, seen, self.now());
        tracing::debug!(pod = seen.pod, fate = ?seen.fate, ?verdict, "compared without an owner");
    }

    fn compared(&self, owner: &Owner, before: &Before<'_>, seen: Seen) {
        let (pod, fate) = (seen.pod.clone(), seen.fate);
        let verdict = self.matcher().seen(owner, before, seen, self.now());
        tracing::debug!(controller = owner.controller, key = %owner.key, pod, ?fate, ?verdict, "compared");
    }
}

/// An object, and its plan from the caches as they are. A panic would end the watch.
fn plan(
    registration: &'static Registration,
    controller: &dyn Runnable,
    key: &ObjectKey,
) -> Option<(ObjectRef, Plan)> {
    let planned = catch_unwind(AssertUnwindSafe(|| controller.plan_now(key)));
    planned.unwrap_or_else(|_| {
        tracing::error!(controller = registration.name, %key, "the plan panicked");
        None
    })
}

impl DryRun for Rehearsal {
    fn begins(&self, controllers: usize) {
        self.printed.begins(controllers);
        self.passes.store(controllers, Ordering::SeqCst);
    }

    fn planned(&self, controller: &'static str, key: &ObjectKey, about: Option<&ObjectRef>, plan: &Plan) {
        self.printed.planned(controller, key, about, plan);
        let kind = about.map_or("", |about| &about.kind);
        let owner = Owner {
            controller,
            key: key.clone(),
        };
        let wishes = self.wishes(plan);
        self.matcher().planned(&owner, kind, &wishes, self.now());
    }

    fn failed(&self, controller: &'static str, key: &ObjectKey, about: Option<&ObjectRef>, error: &str) {
        self.printed.failed(controller, key, about, error);
    }

    fn gone(&self, controller: &'static str, key: &ObjectKey) {
        self.printed.gone(controller, key);
        self.matcher().gone(&Owner {
            controller,
            key: key.clone(),
        });
    }

    fn first_pass_ended(&self, controller: &'static str) {
        self.printed.first_pass_ended(controller);
        if self.passes.fetch_sub(1, Ordering::SeqCst) == 1 {
            tracing::info!("every object was planned once; what becomes of pods is compared until the end");
        }
    }

    fn changed(&self, controller: &'static str, key: &ObjectKey, state: ObjectState) {
        let owner = Owner {
            controller,
            key: key.clone(),
        };
        self.matcher().changed(&owner, state);
    }
}
