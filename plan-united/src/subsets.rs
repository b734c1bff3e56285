//! Which workload is that of which subset.

use std::{cmp::Reverse, collections::BTreeMap};

use kruise_api::{
    names::uniteddeployment::SUBSET_NAME,
    uniteddeployment::{Child, UnitedDeployment},
};

use kruise_plan_kit::injected::is_injected;

use crate::snapshot::Workload;

/// The workloads of a UnitedDeployment by what is to become of them.
#[derive(Default)]
pub(crate) struct Subsets<'a> {
    /// The workload of each subset, also of those that have left the topology.
    pub(crate) current: BTreeMap<&'a str, Found<'a>>,
    /// Further workloads of a subset.
    pub(crate) duplicates: Vec<&'a Workload>,
    /// Workloads of another kind than the template.
    pub(crate) others: Vec<&'a Workload>,
}

/// A workload of a subset.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) workload: &'a Workload,
    /// Is it to be adopted first?
    pub(crate) is_orphan: bool,
}

impl<'a> Subsets<'a> {
    pub(crate) fn find(united: &'a UnitedDeployment, child: Child, workloads: &'a [Workload]) -> Self {
        let mut subsets = Self::default();
        let mut sorted: Vec<&Workload> = workloads.iter().collect();
        sorted.sort_by_key(|workload| {
            // One that is being deleted is the subset's only if there is no other.
            let view = &workload.view;
            (view.deleting, view.created, &view.name, Reverse(workload.child))
        });
        let name_of = |workload: &'a Workload| workload.view.labels.get(SUBSET_NAME).map(String::as_str);
        let is_own = |workload: &&Workload| {
            let controller = workload.view.controller.as_ref();
            *workload.view.namespace == *united.metadata.namespace
                && controller.is_some_and(|controller| {
                    *controller.uid == *united.metadata.uid || is_injected("OthersTaken")
                })
        };
        for workload in sorted.iter().copied().filter(is_own) {
            let Some(name) = name_of(workload).filter(|name| !name.is_empty()) else {
                continue;
            };
            if workload.child != child {
                subsets.others.push(workload);
            } else if subsets.current.contains_key(name) {
                subsets.duplicates.push(workload);
            } else {
                let is_orphan = false;
                subsets.current.insert(name, Found { workload, is_orphan });
            }
        }
        let may_be_adopted = |workload: &&Workload| {
            let view = &workload.view;
            view.controller.is_none()
                && !view.deleting
                && workload.child == child
                && *view.namespace == *united.metadata.namespace
                && united.spec.selector.matches(&view.labels)
        };
        for workload in sorted.into_iter().filter(may_be_adopted) {
            let mut topology = united.spec.topology.subsets.iter();
            let Some(name) = name_of(workload).filter(|name| topology.any(|subset| subset.name == **name))
            else {
                continue;
            };
            let is_orphan = true;
            let adopted = Found { workload, is_orphan };
            subsets.current.entry(name).or_insert(adopted);
        }
        subsets
    }
}
