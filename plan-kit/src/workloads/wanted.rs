//! Whether anybody wants a pod to run.
//!
//! The workload at the top of a pod's owners decides. A workload below it never does: a ReplicaSet that is gone or
//! wants no pods is a step of a rollout of its Deployment.

use jiff::Timestamp;
use kruise_views::{OwnerView, PodView, TEMPLATE_HASH, WorkloadView};

use super::{Aspect, Known, Source, Workload, chain::LONGEST};

/// What a pod says of who wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ownership {
    /// Its controller.
    pub controller: OwnerView,
    /// Its label `pod-template-hash`; empty if it has none.
    pub hash: Box<str>,
    /// When it was created.
    pub created: Option<Timestamp>,
}

impl Ownership {
    /// Of a pod; `None` if it has no controller.
    pub fn of(pod: &PodView) -> Option<Self> {
        Some(Self {
            controller: OwnerView::clone(pod.controller.as_deref()?),
            hash: pod.labels.get(TEMPLATE_HASH).unwrap_or_default().into(),
            created: pod.created,
        })
    }

    /// Of the pods of a workload, whichever object has its name now.
    pub fn of_workload(workload: &Workload) -> Self {
        Self {
            controller: OwnerView::from(workload),
            ..Self::default()
        }
    }

    /// Is this object, which has the name of the owner, the owner itself? A Deployment that was found by the name of
    /// its ReplicaSet is another one if it is younger than the pod.
    fn is_from(&self, owner: &OwnerView, found: &WorkloadView) -> bool {
        if !owner.uid.is_empty() {
            return owner.uid == found.uid;
        }
        let ages = found.created.zip(self.created);
        ages.is_none_or(|(found, pod)| found <= pod)
    }

    /// The Deployment above a ReplicaSet that is gone, which its name and the pod's hash tell.
    fn deployment_above(&self, owner: &OwnerView) -> Option<OwnerView> {
        if self.hash.is_empty() || (&*owner.group, &*owner.kind) != ("apps", "ReplicaSet") {
            return None;
        }
        let name = owner.name.strip_suffix(&*self.hash)?.strip_suffix('-')?;
        (!name.is_empty()).then(|| OwnerView {
            group: "apps".into(),
            kind: "Deployment".into(),
            name: name.into(),
            uid: Box::default(),
        })
    }
}

/// Does anybody want a pod to run?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The workload at the top is there and wants pods, or cannot be read. Its owners from the controller upwards, as
    /// far as they are there, and how many pods each wants, where that is known.
    Yes(Vec<(Workload, Option<i32>)>),
    /// The workload at the top is gone, is being deleted and orphans nothing, or wants no pods. The API server has
    /// said so.
    No,
    /// That depends on a workload, which has yet to be read for this.
    NotYet(Workload, Aspect),
}

/// Does anybody want a pod to run that says this? What a [`Source`] knows of its owners decides; it is asked for
/// [`Aspect::Live`] before a pod is wanted by nobody.
pub fn wanted(pod: &Ownership, known: Source<'_>) -> Wanted {
    let mut owners = Vec::new();
    let mut owner = pod.controller.clone();
    for _ in 0..LONGEST {
        match step(pod, &owner, &mut owners, known) {
            Step::Up(above) => owner = above,
            Step::Wanted => return Wanted::Yes(owners),
            Step::Unwanted => return Wanted::No,
            Step::NotYet(aspect) => return Wanted::NotYet(Workload::from(&owner), aspect),
        }
    }
    // Owners in a circle have no top that could want nothing.
    Wanted::Yes(owners)
}

enum Step {
    /// This one is above it.
    Up(OwnerView),
    Wanted,
    Unwanted,
    NotYet(Aspect),
}

fn step(
    pod: &Ownership,
    owner: &OwnerView,
    owners: &mut Vec<(Workload, Option<i32>)>,
    known: Source<'_>,
) -> Step {
    let workload = Workload::from(owner);
    let mut is_there = false;
    for aspect in [Aspect::Owner, Aspect::Scale, Aspect::Live] {
        let found = match known(&workload, aspect) {
            Known::NotYet => return Step::NotYet(aspect),
            Known::Unreadable => {
                owners.push((workload, None));
                return Step::Wanted;
            }
            Known::Found(found) if pod.is_from(owner, &found) => found,
            Known::Found(_) | Known::Gone => {
                is_there = false;
                continue;
            }
        };
        is_there = true;
        let above = found.controller.as_deref().cloned();
        let wants_none = found.is_ending() || found.replicas.is_some_and(|replicas| replicas <= 0);
        // Of an owner nobody may have read the scale, and of a scale nobody has read the owner.
        let is_known = aspect > Aspect::Owner || found.replicas.is_some();
        if above.is_some() || found.scale_only || (is_known && !wants_none) {
            owners.push((workload, found.replicas));
            return above.map_or(Step::Wanted, Step::Up);
        }
    }
    match pod.deployment_above(owner) {
        Some(above) if !is_there => Step::Up(above),
        _ => Step::Unwanted,
    }
}
