//! A plan: everything one reconcile decides from one snapshot.

use std::{sync::Arc, time::Duration};

use kruise_api::{meta::LabelSelector, names::events::Reason};
use kruise_views::PodView;
use serde_json::Value;

use crate::{
    Intent,
    memory::Known,
    need::Need,
    newest::Newest,
    outlook::Outlook,
    rollout::Stage,
    write::{Target, Write},
};

/// What to do now, what to report, and when to plan again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Ordered writes, one entry for each object. Those of one phase may run side by side.
    pub writes: Vec<ObjectWrites>,
    /// The owner's status, if it differs from what is stored.
    pub status: Option<StatusPatch>,
    /// How far the owner's rollout is, if it has one.
    pub stage: Option<Stage>,
    /// Events on the owner that do not depend on the outcome of a write.
    pub events: Vec<EventNote>,
    /// Plan again after this long even if nothing changes.
    pub requeue: Option<Duration>,
    /// Why things are, and are not, being done. Feeds `kruise explain`.
    pub why: Vec<Why>,
    /// How long the rest of the rollout takes. Only where an explanation is wanted, and for people only.
    pub outlook: Option<Outlook>,
    /// What this plan tries and later ones may have to try again, by keys of its own: the next plan finds in its
    /// memory how often that was, and when last.
    pub attempts: Vec<String>,
    /// Objects to fetch before planning again. A plan with needs has no writes.
    pub needs: Vec<Need>,
    /// Objects whose contents are known to be as they are to be, where caches have no contents. The next plan finds
    /// them in its memory, with those that this one writes.
    pub known: Option<Known>,
    /// The newest pod that each node had, for the memory of the next plan. `None` leaves what that has.
    pub newest: Option<Arc<Newest>>,
}

/// Writes for one object, in order. A failure ends these writes, not those of other objects.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectWrites {
    /// When they may start.
    pub phase: Phase,
    /// How they are started among others of their phase.
    pub batching: Batching,
    /// The budget that is charged first, in a phase before: where that fails, these writes are not made.
    pub after: Option<Box<Target>>,
    /// The writes.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Plan again after this long at the latest.
    pub fn requeue_after(&mut self, delay: impl IntoIterator<Item = Duration>) {
        self.requeue = self.requeue.into_iter().chain(delay).min();
    }

    /// Does it create pods?
    pub fn creates_pods(&self) -> bool {
        let mut steps = self.writes.iter().flat_map(|object| &object.steps);
        steps.any(|step| step.write.intent() == Intent::CREATE_POD)
    }

    /// Does it have writes in the phase of pods?
    pub fn writes_pods(&self) -> bool {
        self.writes.iter().any(|object| object.phase == Phase::Pods)
    }
}

impl ObjectWrites {
    /// Writes that start as soon as the executor has room for them.
    pub fn new(phase: Phase, steps: Vec<Step>) -> Self {
        Self {
            phase,
            batching: Batching::Bounded,
            after: None,
            steps,
        }
    }

    /// The writes of one pod.
    pub fn of_pod(steps: Vec<Step>) -> Self {
        Self::new(Phase::Pods, steps)
    }

    /// One write by itself, without an event.
    pub fn alone(phase: Phase, write: Write, reason: impl Into<String>) -> Self {
        Self::new(phase, vec![Step::new(write, reason)])
    }
}

/// A phase starts when all earlier phases have ended. A failure in `Revisions` cancels the later ones, one in
/// `Budgets` the writes that are made after that budget was charged ([`ObjectWrites::after`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Revisions exist before pods name them.
    Revisions,
    /// Budgets are charged before pods become unavailable.
    Budgets,
    /// Pods; before a new one come its claims.
    Pods,
    /// Clean-up: unused revisions, consumed requests.
    Cleanup,
}

/// How the writes of several objects in one phase are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Batching {
    /// Batches of 1, 2, 4, … ; a batch with a failure is the last (quota errors cost one call, not hundreds).
    SlowStart,
    /// As many side by side as the executor allows.
    Bounded,
}

/// One write and what to report about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The write.
    pub write: Write,
    /// Why, in plain words. Part of the stable text form.
    pub reason: String,
    /// Event after success.
    pub done: Option<EventNote>,
    /// Event after failure.
    pub failed: Option<FailureNote>,
    /// For creations: the owner finds the object by this selector, by its name and by its controller. What was created
    /// otherwise is deleted again, and the step fails: the owner would let it go at once, and make the next one.
    pub found_by: Option<Arc<LabelSelector>>,
}

impl Step {
    /// A write without an event.
    pub fn new(write: Write, reason: impl Into<String>) -> Self {
        Self {
            write,
            reason: reason.into(),
            done: None,
            failed: None,
            found_by: None,
        }
    }

    /// The same for an object that its owner finds by this selector.
    #[must_use]
    pub fn found_by(self, selector: &Arc<LabelSelector>) -> Self {
        Self {
            found_by: Some(Arc::clone(selector)),
            ..self
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Severity, and one word for machines.
    pub reason: &'static Reason,
    /// A sentence for people.
    pub message: String,
    /// The object that it is about; `None` if that is the owner.
    pub about: Option<Box<Involved>>,
}

/// An object that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Involved {
    /// Group and version.
    pub api_version: Box<str>,
    /// Kind.
    pub kind: Box<str>,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object; empty if it is not known.
    pub resource_version: Box<str>,
}

/// A pod, as an event names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
}

impl PodRef {
    /// Names a pod.
    pub fn of(pod: &PodView) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            resource_version: pod.resource_version.clone(),
        }
    }
}

impl From<PodRef> for Involved {
    fn from(pod: PodRef) -> Self {
        Self {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: pod.namespace,
            name: pod.name,
            uid: pod.uid,
            resource_version: pod.resource_version,
        }
    }
}

impl EventNote {
    /// An event on the owner.
    pub fn new(reason: &'static Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            about: None,
        }
    }

    /// The same event on a pod.
    #[must_use]
    pub fn on(self, pod: &PodView) -> Self {
        self.about(PodRef::of(pod).into())
    }

    /// The same event on another object.
    #[must_use]
    pub fn about(self, object: Involved) -> Self {
        Self {
            about: Some(Box::new(object)),
            ..self
        }
    }
}

/// Event whose message carries the error: `prefix` + error + `suffix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureNote {
    /// One word for machines, and that it is a warning.
    pub reason: &'static Reason,
    /// Text before the error.
    pub prefix: String,
    /// Text after the error.
    pub suffix: String,
}

impl FailureNote {
    /// A warning that ends in the error.
    pub fn new(reason: &'static Reason, prefix: String) -> Self {
        Self {
            reason,
            prefix,
            suffix: String::new(),
        }
    }
}

/// The owner's new status as a merge patch of its status subresource.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusPatch {
    /// Whose status.
    pub target: Target,
    /// `resourceVersion` of the object the patch was made from: it is meant for no other.
    pub version: String,
    /// Merge patch: `{"status": {…}}`. Only what changed.
    pub patch: Value,
    /// Must it go out at once (a rollout ended, a condition changed) or may it be coalesced with later ones?
    pub urgent: bool,
}

/// One line of explanation: about the whole set or one pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Why {
    /// Pod name, empty for the whole set, or a node or namespace as [`Why::of_node`] and [`Why::of_namespace`]
    /// write it.
    pub about: String,
    /// Plain words: what happens or does not, and which limit decides it.
    pub text: String,
}

impl Why {
    /// About one pod.
    pub fn new(pod: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            about: pod.into(),
            text: text.into(),
        }
    }

    /// About a node, which no pod can have the name of: names have no colon.
    pub fn of_node(node: &str, text: impl Into<String>) -> Self {
        Self::new(format!("{}{node}", Self::NODE), text)
    }

    /// The node that it is about.
    pub fn node(&self) -> Option<&str> {
        self.about.strip_prefix(Self::NODE)
    }

    /// What precedes the name of a node.
    const NODE: &str = "node:";

    /// About a namespace, which no pod can have the name of either.
    pub fn of_namespace(namespace: &str, text: impl Into<String>) -> Self {
        Self::new(format!("{}{namespace}", Self::NAMESPACE), text)
    }

    /// The namespace that it is about.
    pub fn namespace(&self) -> Option<&str> {
        self.about.strip_prefix(Self::NAMESPACE)
    }

    /// What precedes the name of a namespace.
    const NAMESPACE: &str = "namespace:";

    /// About the whole set.
    pub fn of_set(text: impl Into<String>) -> Self {
        Self::new(String::new(), text)
    }
}

/// Is a written explanation wanted? It costs a line of text for every pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Explain {
    /// Only actions.
    #[default]
    No,
    /// Actions, and why other pods are left alone.
    Yes,
}
