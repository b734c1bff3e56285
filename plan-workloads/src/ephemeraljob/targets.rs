//! The pods that get the containers, and how far each of them is.

use std::collections::BTreeSet;

use kruise_api::ephemeraljob::EphemeralJob;
use kruise_plan_kit::injected::is_injected;
use kruise_views::{EphemeralState, EphemeralView, PodView};

use super::snapshot::Snapshot;

/// A pod of the job.
#[derive(Clone, Debug)]
pub(super) struct Target<'a> {
    pub(super) view: &'a PodView,
    /// The containers of the job that it holds.
    pub(super) own: Vec<&'a EphemeralView>,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has no container of the job, or its node has reported none.
    Unknown,
    Waiting,
    Running,
    Succeeded,
    Failed,
}

/// The pods that the selector matches.
#[derive(Debug, Default)]
pub(super) struct Targets<'a> {
    /// Those that get the containers, or have them: as many as `replicas` allows.
    pub(super) all: Vec<Target<'a>>,
    /// Those that `replicas` leaves out.
    pub(super) beyond: Vec<Target<'a>>,
    /// Those that hold a container of one of the names that is not the job's, with its name.
    pub(super) foreign: Vec<(&'a PodView, &'a str)>,
}

/// How many pods are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) matches: i32,
    pub(super) running: i32,
    pub(super) succeeded: i32,
    pub(super) waiting: i32,
    pub(super) failed: i32,
}

impl<'a> Targets<'a> {
    pub(super) fn new(snapshot: &Snapshot<'a>) -> Self {
        let job = snapshot.job;
        let names: BTreeSet<&str> = job.spec.template.names().collect();
        let mut pods: Vec<&PodView> = snapshot.pods.iter().map(|pod| &**pod).collect();
        pods.retain(|pod| pod.is_active());
        pods.sort_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)));
        let mut targets = Self::default();
        let mut all = Vec::new();
        for view in pods {
            let named = view.ephemeral.iter().filter(|one| names.contains(&*one.name));
            if let Some(other) = named.clone().find(|one| *one.job != *job.metadata.uid) {
                targets.foreign.push((view, &other.name));
                continue;
            }
            all.push(Target {
                view,
                own: named.collect(),
            });
        }
        // A pod that has the containers keeps its place, whatever becomes of the labels of others.
        all.sort_by_key(|target| target.own.is_empty());
        targets.beyond = all.split_off(limit(job).min(all.len()));
        targets.all = all;
        targets
    }

    pub(super) fn count(&self) -> Counts {
        let of = |state| {
            let alike = self.all.iter().filter(|target| target.state() == state);
            i32::try_from(alike.count()).unwrap_or(i32::MAX)
        };
        Counts {
            matches: i32::try_from(self.all.len()).unwrap_or(i32::MAX),
            running: of(State::Running),
            succeeded: of(State::Succeeded),
            waiting: of(State::Waiting),
            failed: of(State::Failed),
        }
    }

    /// Pods with containers of the job that have not ended.
    pub(super) fn busy(&self) -> usize {
        let all = self.all.iter().chain(&self.beyond);
        all.filter(|target| target.is_busy()).count()
    }
}

/// Most pods that get the containers.
fn limit(job: &EphemeralJob) -> usize {
    match job.spec.replicas {
        Some(replicas) if !is_injected("ReplicasIgnored") => usize::try_from(replicas).unwrap_or(0),
        _ => usize::MAX,
    }
}

impl Target<'_> {
    /// How far it is, as OpenKruise counts: one container that failed is enough.
    pub(super) fn state(&self) -> State {
        let any = |is: fn(EphemeralState) -> bool| self.own.iter().any(|one| is(one.state));
        if any(|state| matches!(state, EphemeralState::Failed(_))) {
            State::Failed
        } else if !self.own.is_empty() && !any(|state| state != EphemeralState::Succeeded) {
            State::Succeeded
        } else if any(|state| state == EphemeralState::Running) {
            State::Running
        } else if any(|state| state == EphemeralState::Waiting) {
            State::Waiting
        } else {
            State::Unknown
        }
    }

    fn is_busy(&self) -> bool {
        self.own.iter().any(|one| !one.state.has_ended())
    }
}

impl Counts {
    /// Has each pod come to its end?
    pub(super) fn are_done(self) -> bool {
        let is_mixed = self.succeeded > 0 && self.failed > 0;
        self.matches > 0
            && self.succeeded.saturating_add(self.failed) == self.matches
            && !(is_mixed && is_injected("MixedResultsUnended"))
    }
}
