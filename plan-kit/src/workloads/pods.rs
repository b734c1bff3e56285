//! The pods of workloads, and how many there should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::meta::LabelSelector;
use kruise_views::{Labels, OwnerView, PodView, WorkloadView};

use super::{Aspect, Expected, Known, Source, Workload, chain};

/// The pods of a workload or of a selector.
#[derive(Clone, Debug, PartialEq)]
pub struct PodsOf {
    /// The pods in any state, in the order in which they were given.
    pub pods: Vec<Arc<PodView>>,
    /// How many there should be.
    pub expected: Expected,
    /// Workloads that have yet to be read. Until then the rest is not to be trusted.
    pub missing: BTreeSet<Workload>,
}

impl PodsOf {
    fn none() -> Self {
        Self {
            pods: Vec::new(),
            expected: Expected::Known(0),
            missing: BTreeSet::new(),
        }
    }
}

/// The pods of a workload, of all pods of its namespace: those with the workload among their owners; or, if there are none and
/// its scale names a selector, those that the selector matches. A workload that does not exist, that is being deleted or
/// that wants no pods has none.
pub fn of_target(target: &Workload, namespace: &[Arc<PodView>], known: Source<'_>) -> PodsOf {
    let found = match known(target, Aspect::Scale) {
        Known::Found(found) if found.deleting || found.replicas.is_some_and(|replicas| replicas <= 0) => {
            return PodsOf::none();
        }
        Known::Found(found) => Some(found),
        Known::Unreadable => None,
        Known::Gone => return PodsOf::none(),
        Known::NotYet => {
            return PodsOf {
                missing: [target.clone()].into(),
                ..PodsOf::none()
            };
        }
    };
    let mut owned = Owned::new(target, known);
    let is_owned = |pod: &&Arc<PodView>| {
        let controller = pod.controller.as_deref();
        controller.is_some_and(|controller| owned.is_below(controller))
    };
    let mut pods: Vec<_> = namespace.iter().filter(is_owned).cloned().collect();
    let missing = owned.missing;
    if let Some(selector) = found.as_deref().and_then(|found| scale_selector(target, found))
        && pods.is_empty()
        && missing.is_empty()
    {
        let selected = |pod: &&Arc<PodView>| selector.matches_by(|key| pod.labels.get(key));
        pods = namespace.iter().filter(selected).cloned().collect();
    }
    let replicas = found.and_then(|found| found.replicas);
    PodsOf {
        pods,
        expected: replicas.map_or(Expected::Unknown, Expected::Known),
        missing,
    }
}

/// The selector by which pods are found that do not name the workload as an owner. Pods of the built-in kinds always do.
fn scale_selector<'f>(target: &Workload, found: &'f WorkloadView) -> Option<&'f LabelSelector> {
    let selector = found.selector.as_deref();
    selector.filter(|selector| !target.owns_pods_by_itself() && !selector.is_empty())
}

/// Does the scale of a workload name a selector that matches these labels? Pods of built-in kinds are found by their owners.
pub fn is_in_scale(target: &Workload, labels: &Labels, known: Source<'_>) -> bool {
    if target.owns_pods_by_itself() {
        return false;
    }
    let Known::Found(found) = known(target, Aspect::Scale) else {
        return false;
    };
    let selector = scale_selector(target, &found);
    selector.is_some_and(|selector| selector.matches_by(|key| labels.get(key)))
}

/// Which controllers are below a workload.
struct Owned<'a> {
    target: &'a Workload,
    known: Source<'a>,
    /// By the uid of the controller.
    judged: BTreeMap<Box<str>, bool>,
    missing: BTreeSet<Workload>,
}

impl<'a> Owned<'a> {
    fn new(target: &'a Workload, known: Source<'a>) -> Self {
        Self {
            target,
            known,
            judged: BTreeMap::new(),
            missing: BTreeSet::new(),
        }
    }

    /// Is the workload this controller, or one of its owners?
    fn is_below(&mut self, controller: &OwnerView) -> bool {
        if let Some(judged) = self.judged.get(&*controller.uid) {
            return *judged;
        }
        // Reading every Job of a namespace to learn that no Deployment owns it would cost a request each.
        let is_bounded = self.target.owns_pods_by_itself();
        let known = |workload: &Workload, aspect: Aspect| {
            if is_bounded && !workload.owns_pods_by_itself() {
                Known::Unreadable
            } else {
                (self.known)(workload, aspect)
            }
        };
        let chain = chain(controller, &known);
        let is_below = chain.workloads.contains(self.target);
        self.missing.extend(chain.missing.filter(|_| !is_below));
        self.judged.insert(controller.uid.clone(), is_below);
        is_below
    }
}

/// The pods that the selector matches, of all pods of its namespace, and as many as the distinct controllers of those that are
/// active want: for a ReplicaSet of a Deployment, the Deployment. Where a controller does not say, or cannot be read, its
/// active pods count. Controllers that do not exist or are being deleted want none, and pods without a controller are not
/// expected.
pub fn of_selector(selector: &LabelSelector, namespace: &[Arc<PodView>], known: Source<'_>) -> PodsOf {
    let selected =
        |pod: &&Arc<PodView>| !selector.is_empty() && selector.matches_by(|key| pod.labels.get(key));
    let pods: Vec<_> = namespace.iter().filter(selected).cloned().collect();
    let mut controllers: BTreeMap<&str, (&OwnerView, i32)> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.is_active()) {
        let Some(controller) = pod.controller.as_deref() else {
            continue;
        };
        let counted = controllers.entry(&controller.uid).or_insert((controller, 0));
        counted.1 = counted.1.saturating_add(1);
    }
    let mut scales = Scales::default();
    for (controller, active) in controllers.into_values() {
        scales.add(controller, active, known);
    }
    PodsOf {
        expected: Expected::Known(scales.total),
        missing: scales.missing,
        pods,
    }
}

/// A sum of scales.
#[derive(Default)]
struct Scales {
    total: i32,
    counted: BTreeSet<Box<str>>,
    missing: BTreeSet<Workload>,
}

impl Scales {
    fn add(&mut self, controller: &OwnerView, active: i32, known: Source<'_>) {
        let workload = Workload::from(controller);
        let found = match known(&workload, Aspect::Scale) {
            Known::Found(found) if *found.uid == *controller.uid => found,
            Known::Found(_) | Known::Gone => return,
            Known::Unreadable => return self.sum(active),
            Known::NotYet => {
                self.missing.insert(workload);
                return;
            }
        };
        let above = found.controller.as_deref();
        let deployment = above.filter(|above| (&*above.group, &*above.kind) == ("apps", "Deployment"));
        let is_replica_set = workload.group_kind() == ("apps", "ReplicaSet");
        if let Some(deployment) = deployment.filter(|_| is_replica_set) {
            return self.add(deployment, active, known);
        }
        if found.deleting || !self.counted.insert(found.uid.clone()) {
            return;
        }
        self.sum(found.replicas.unwrap_or(active).max(0));
    }

    fn sum(&mut self, more: i32) {
        self.total = self.total.saturating_add(more);
    }
}
