//! The pods of a workload, each classified once.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::names::{REVISION_HASH, SPECIFIED_DELETE};
use kruise_views::PodView;

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
    /// On the update revision?
    pub updated: bool,
    /// Is its deletion requested?
    pub specified: bool,
}

impl<'a> Pod<'a> {
    /// Classifies a pod against the update revision. `is_named`: the specification lists it for deletion.
    pub fn of(
        view: &'a Arc<PodView>,
        update: &Revision,
        is_named: bool,
        min_ready_seconds: i32,
        now: Timestamp,
    ) -> Self {
        let state = State::of(view);
        Self {
            state,
            service: service_in(state, view, min_ready_seconds, now),
            updated: update.labels(label_of(view)),
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

    /// Its revision label.
    pub fn label(&self) -> &'a str {
        label_of(self.view)
    }
}

fn label_of(pod: &PodView) -> &str {
    pod.labels.get(REVISION_HASH).unwrap_or_default()
}
