//! The pods of the workload by version and subset.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::workloadspread::WorkloadSpread;
use kruise_plan_kit::spread::{matched, selects, version};
use kruise_views::PodView;

/// Where a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In the subset of this index in the specification.
    Subset(usize),
    /// In a subset that the specification does not have any more.
    Removed,
    /// In none: no annotation says that it is in one of this WorkloadSpread.
    Unmanaged,
    /// In none, and whether one fits its node is not known yet.
    Unread,
}

/// The pods of one version.
#[derive(Clone, Debug, Default)]
pub(super) struct Group<'a> {
    /// Each with its place, by name.
    pub(super) pods: Vec<(&'a Arc<PodView>, Place)>,
}

impl<'a> Group<'a> {
    /// The pods of a subset.
    pub(super) fn subset(&self, index: usize) -> impl Iterator<Item = &'a Arc<PodView>> {
        self.at(move |place| place == Place::Subset(index))
    }

    /// The pods that are known to be in no subset.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = &'a Arc<PodView>> {
        self.at(|place| matches!(place, Place::Removed | Place::Unmanaged))
    }

    fn at(&self, is_wanted: impl Fn(Place) -> bool) -> impl Iterator<Item = &'a Arc<PodView>> {
        let pods = self.pods.iter().filter(move |(_, place)| is_wanted(*place));
        pods.map(|(pod, _)| *pod)
    }
}

/// The pods by version, those that the target filter selects. Two WorkloadSpreads may have the same pods, one
/// through a Deployment and one through its ReplicaSet: pods of one that goes `before` this one are left out, or
/// both would write them in turns.
pub(super) fn groups<'a>(
    spread: &WorkloadSpread,
    pods: &'a [Arc<PodView>],
    before: &BTreeSet<String>,
) -> BTreeMap<String, Group<'a>> {
    let mut groups: BTreeMap<String, Group<'a>> = BTreeMap::new();
    let mut selected: Vec<&Arc<PodView>> = pods
        .iter()
        .filter(|pod| selects(&spread.spec, &pod.labels))
        .filter(|pod| matched(&pod.annotations).is_none_or(|matched| !before.contains(&matched.name)))
        .collect();
    selected.sort_by(|a, b| (&a.name, &a.uid).cmp(&(&b.name, &b.uid)));
    for pod in selected {
        let kind = pod.controller.as_ref().map_or("", |owner| &owner.kind);
        let group = groups.entry(version(&pod.labels, kind)).or_default();
        group.pods.push((pod, place(spread, pod)));
    }
    groups
}

fn place(spread: &WorkloadSpread, pod: &PodView) -> Place {
    let matched = matched(&pod.annotations);
    let Some(matched) =
        matched.filter(|matched| matched.name == spread.metadata.name && !matched.subset.is_empty())
    else {
        return Place::Unmanaged;
    };
    let mut subsets = spread.spec.subsets.iter();
    let found = subsets.position(|subset| subset.name == matched.subset);
    found.map_or(Place::Removed, Place::Subset)
}
