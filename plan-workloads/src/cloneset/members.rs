//! The pods of a set, each classified once.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{
    cloneset::CloneSet,
    names::{REVISION_HASH, SPECIFIED_DELETE},
};
use kruise_plan_kit::{
    availability::{Service, service_in},
    lifecycle::State,
    order::Candidate,
    revision::Revision,
};
use kruise_views::PodView;

/// Which side of the rollout a pod is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Some other revision.
    Old,
    /// The update revision.
    New,
}

/// How a pod counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Held before deletion.
    PreparingDelete,
    /// Asked to go, by label or by name in the specification.
    Specified,
    /// Should serve, does not.
    Unavailable,
    /// Serves.
    Available,
}

/// A claimed, active pod.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The pod.
    pub pod: &'a Arc<PodView>,
    /// Lifecycle state.
    pub state: State,
    /// Service at this instant.
    pub service: Service,
    /// Side of the rollout.
    pub side: Side,
    /// Asked to go?
    pub specified: bool,
}

impl<'a> Member<'a> {
    /// What its place in an order depends on.
    pub(super) fn candidate(&self) -> Candidate<'a> {
        Candidate {
            pod: self.pod,
            service: self.service,
        }
    }

    /// How the pod counts.
    pub fn standing(&self) -> Standing {
        if self.state == State::PreparingDelete {
            Standing::PreparingDelete
        } else if self.specified {
            Standing::Specified
        } else if self.service.is_available() {
            Standing::Available
        } else {
            Standing::Unavailable
        }
    }
}

/// The pods that the set controls, sorted by what becomes of them.
pub(super) struct Claimed<'a> {
    /// Active and matching the selector.
    pub(super) active: Vec<&'a Arc<PodView>>,
    /// Active, ours, and no longer matching.
    pub(super) released: Vec<&'a Arc<PodView>>,
}

/// Splits the pods. Pods that ended or are being deleted belong to nobody's count.
pub(super) fn claim<'a>(set: &CloneSet, pods: &'a [Arc<PodView>]) -> Claimed<'a> {
    let mut claimed = Claimed {
        active: Vec::with_capacity(pods.len()),
        released: Vec::new(),
    };
    for pod in pods.iter().filter(|pod| pod.is_active()) {
        if set.spec.selector.matches_by(|key| pod.labels.get(key)) {
            claimed.active.push(pod);
        } else {
            claimed.released.push(pod);
        }
    }
    claimed.active.sort_by(|a, b| a.name.cmp(&b.name));
    claimed.released.sort_by(|a, b| a.name.cmp(&b.name));
    claimed
}

/// Classifies the active pods against the update revision.
pub(super) fn classify<'a>(
    set: &CloneSet,
    active: &[&'a Arc<PodView>],
    update: &Revision,
    now: Timestamp,
) -> Vec<Member<'a>> {
    let wanted: std::collections::BTreeSet<&str> = set
        .spec
        .scale_strategy
        .pods_to_delete
        .iter()
        .map(String::as_str)
        .collect();
    active
        .iter()
        .map(|pod| {
            let state = State::of(pod);
            Member {
                pod,
                state,
                service: service_in(state, pod, set.spec.min_ready_seconds, now),
                side: side(pod, update),
                specified: pod.labels.get(SPECIFIED_DELETE).is_some() || wanted.contains(&*pod.name),
            }
        })
        .collect()
}

fn side(pod: &PodView, update: &Revision) -> Side {
    let label = pod.labels.get(REVISION_HASH).unwrap_or_default();
    if update.labels(label) {
        Side::New
    } else {
        Side::Old
    }
}
