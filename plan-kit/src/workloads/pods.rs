//! The pods of workloads, and how many there should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::meta::LabelSelector;
use kruise_views::{Labels, OwnerView, PodView, WorkloadView};

use super::{Aspect, Expected, Known, Ownership, Source, Wanted, Workload, chain, wanted};

/// The pods of a workload or of a selector.
#[derive(Clone, Debug, PartialEq)]
pub struct PodsOf {
    /// The pods in any state, in the order in which they were given.
    pub pods: Vec<Arc<PodView>>,
    /// How many there should be.
    pub expected: Expected,
    /// Workloads that have yet to be read. Until then the rest is not to be trusted.
    pub missing: BTreeSet<Workload>,
    /// Workloads that are gone, end, or want no pods as far as a cache knows, and that the API server has yet to say
    /// this of. Until then the rest is not to be trusted.
    pub doubted: BTreeSet<Workload>,
    /// How many active pods are left out because nobody wants them.
    pub unwanted: usize,
}

impl PodsOf {
    fn none() -> Self {
        Self {
            pods: Vec::new(),
            expected: Expected::Known(0),
            missing: BTreeSet::new(),
            doubted: BTreeSet::new(),
            unwanted: 0,
        }
    }

    /// A workload has yet to be read.
    fn lacks(&mut self, workload: Workload, aspect: Aspect) {
        let lacking = match aspect {
            Aspect::Live => &mut self.doubted,
            Aspect::Owner | Aspect::Scale => &mut self.missing,
        };
        lacking.insert(workload);
    }
}

/// As [`of_target`], but a target that nobody wants the pods of has none, and that is not believed before the API
/// server has said it.
pub fn of_wanted_target(target: &Workload, namespace: &[Arc<PodView>], known: Source<'_>) -> PodsOf {
    let mut none = PodsOf::none();
    match wanted(&Ownership::of_workload(target), known) {
        Wanted::Yes(_) => return of_target(target, namespace, known),
        Wanted::No => {}
        Wanted::NotYet(workload, aspect) => none.lacks(workload, aspect),
    }
    none
}

/// The pods of a workload, of all pods of its namespace: those with the workload among their owners; or, if there
/// are none and its scale names a selector, those that the selector matches. A workload that does not exist, that
/// is being deleted or that wants no pods has none.
pub fn of_target(target: &Workload, namespace: &[Arc<PodView>], known: Source<'_>) -> PodsOf {
    let found = match known(target, Aspect::Scale) {
        Known::Found(found) if found.is_ending() || found.replicas.is_some_and(|replicas| replicas <= 0) => {
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
        ..PodsOf::none()
    }
}

/// The selector by which pods are found that do not name the workload as an owner. Pods of the built-in kinds
/// always do.
fn scale_selector<'f>(target: &Workload, found: &'f WorkloadView) -> Option<&'f LabelSelector> {
    let selector = found.selector.as_deref();
    selector.filter(|selector| !target.owns_pods_by_itself() && !selector.is_empty())
}

/// Does the scale of a workload name a selector that matches these labels? Pods of built-in kinds are found by
/// their owners.
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

/// The pods that the selector matches and that somebody wants, of all pods of its namespace, and as many as the
/// distinct controllers of those that are active want: for a ReplicaSet of a Deployment, the Deployment. Where a
/// controller does not say, or cannot be read, its active pods count. Pods without a controller are not expected.
pub fn of_selector(selector: &LabelSelector, namespace: &[Arc<PodView>], known: Source<'_>) -> PodsOf {
    let selected =
        |pod: &&Arc<PodView>| !selector.is_empty() && selector.matches_by(|key| pod.labels.get(key));
    let mut found = PodsOf::none();
    let mut demand = Demand::default();
    for pod in namespace.iter().filter(selected) {
        if let Some(ownership) = Ownership::of(pod).filter(|_| pod.is_active()) {
            match demand.judge(&ownership, known) {
                Wanted::Yes(owners) => demand.add(&owners),
                Wanted::No => {
                    found.unwanted += 1;
                    continue;
                }
                Wanted::NotYet(workload, aspect) => found.lacks(workload, aspect),
            }
        }
        found.pods.push(Arc::clone(pod));
    }
    found.expected = Expected::Known(demand.total());
    found
}

/// How many pods their workloads want.
#[derive(Default)]
struct Demand {
    /// Owners by the uid of the controller.
    judged: BTreeMap<Box<str>, Wanted>,
    /// What each workload wants, and how many active pods it has.
    workloads: BTreeMap<Workload, (Option<i32>, i32)>,
}

impl Demand {
    fn judge(&mut self, pod: &Ownership, known: Source<'_>) -> Wanted {
        let uid = &pod.controller.uid;
        if let Some(judged) = self.judged.get(uid) {
            return judged.clone();
        }
        let judged = wanted(pod, known);
        // Where the controller is gone, the age of the pod matters.
        let is_there = |owners: &[(Workload, _)]| {
            let first = owners.first();
            first.is_some_and(|(first, _)| *first == Workload::from(&pod.controller))
        };
        if matches!(&judged, Wanted::Yes(owners) if is_there(owners)) {
            self.judged.insert(uid.clone(), judged.clone());
        }
        judged
    }

    /// A pod of these owners.
    fn add(&mut self, owners: &[(Workload, Option<i32>)]) {
        if let Some((workload, replicas)) = expecting(owners) {
            let counted = self.workloads.entry(workload.clone());
            let counted = counted.or_insert((*replicas, 0));
            counted.1 = counted.1.saturating_add(1);
        }
    }

    fn total(&self) -> i32 {
        let each = self.workloads.values();
        let each = each.map(|(replicas, active)| replicas.unwrap_or(*active).max(0));
        each.fold(0, i32::saturating_add)
    }
}

/// Of the owners of a pod, the one whose replicas a budget of labels expects: its controller, or the Deployment of
/// that.
pub fn expecting(owners: &[(Workload, Option<i32>)]) -> Option<&(Workload, Option<i32>)> {
    match owners {
        [set, deployment, ..]
            if set.0.group_kind() == ("apps", "ReplicaSet")
                && deployment.0.group_kind() == ("apps", "Deployment") =>
        {
            Some(deployment)
        }
        _ => owners.first(),
    }
}
