//! The pods of a workload, each classified once.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::names::{REVISION_HASH, SPECIFIED_DELETE};
use kruise_views::PodView;

use super::drift::{Drift, Revisions};
use crate::{
    availability::{Service, service_in},
    history::revision::Revision,
    lifecycle::State,
    order::Candidate,
};

/// How a pod counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Held before deletion.
    PreparingDelete,
    /// Its deletion is requested, by label or by name in the specification.
    Specified,
    /// Should be available, is not.
    Unavailable,
    /// Available.
    Available,
}

/// An active pod of a workload.
#[derive(Clone, Debug)]
pub struct Pod<'a> {
    /// The pod as it was read.
    pub view: &'a Arc<PodView>,
    /// Lifecycle state.
    pub state: State,
    /// Service at this instant.
    pub service: Service,
    /// On the update revision? A pod that runs an image of another one is not, whatever its label says.
    pub updated: bool,
    /// How what it runs differs from the revision of its label.
    pub drift: Drift,
    /// Is its deletion requested?
    pub specified: bool,
}

impl<'a> Pod<'a> {
    /// Classifies a pod against the revisions. `is_named`: the specification lists it for deletion.
    pub fn of(
        view: &'a Arc<PodView>,
        revisions: &Revisions<'_>,
        is_named: bool,
        min_ready_seconds: i32,
        now: Timestamp,
    ) -> Self {
        let (state, label) = (State::of(view), label_of(view));
        let drift = revisions.drift(view, state, label);
        Self {
            state,
            drift,
            service: service_in(state, view, min_ready_seconds, now),
            updated: drift != Drift::Old && revisions.is_update(label),
            specified: view.labels.get(SPECIFIED_DELETE).is_some() || is_named,
            view,
        }
    }

    /// What its place in an order depends on.
    pub fn candidate(&self) -> Candidate<'a> {
        Candidate {
            pod: self.view,
            service: self.service,
        }
    }

    /// How the pod counts.
    pub fn class(&self) -> Class {
        if self.state == State::PreparingDelete {
            Class::PreparingDelete
        } else if self.specified {
            Class::Specified
        } else if self.service.is_available() {
            Class::Available
        } else {
            Class::Unavailable
        }
    }

    /// Does it run what the update revision asks for, as far as can be seen? What a status counts.
    pub fn runs_update(&self) -> bool {
        self.updated && self.drift == Drift::None
    }

    /// Is it on this revision?
    pub fn is_on(&self, revision: &Revision) -> bool {
        self.drift != Drift::Old && revision.labels(self.label())
    }

    /// Its revision label.
    pub fn label(&self) -> &'a str {
        label_of(self.view)
    }
}

fn label_of(pod: &PodView) -> &str {
    pod.labels.get(REVISION_HASH).unwrap_or_default()
}
