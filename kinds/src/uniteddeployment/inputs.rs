//! The input of a plan of a UnitedDeployment: its workloads and their pods, read from the caches or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::uniteddeployment::{Child, UnitedDeployment};
use kruise_frame::caches::revisions_of;
use kruise_plan_kit::{Explain, Memory, Plan, injected::is_injected};
use kruise_plan_united::{Snapshot, Workload, plan, resource};
use kruise_runtime::Served;
use kruise_views::{MetadataView, PodView, RevisionView, SubsetView};

/// The objects of one UnitedDeployment, and what the cluster serves.
pub struct Inputs {
    /// The workloads of its subsets, with their pods.
    pub workloads: Vec<Workload>,
    revisions: Vec<Arc<RevisionView>>,
    child_api_version: Option<String>,
}

/// How pods of workloads are found.
pub struct Pods<'a> {
    /// The pods that the owner with this uid controls.
    pub of: &'a dyn Fn(&str) -> Vec<Arc<PodView>>,
    /// The ReplicaSets that the owner with this uid controls.
    pub replica_sets: &'a dyn Fn(&str) -> Vec<Arc<MetadataView>>,
}

impl Inputs {
    /// From workloads with the label of a subset, and revisions. It keeps those in its namespace that it controls,
    /// and those without a controller.
    pub fn new(
        united: &UnitedDeployment,
        served: &Served,
        all: Vec<(Child, Arc<SubsetView>)>,
        pods: &Pods<'_>,
        revisions: Vec<Arc<RevisionView>>,
    ) -> Self {
        let metadata = &united.metadata;
        let is_concerned = |view: &SubsetView| {
            let controller = view.controller.as_ref();
            *view.namespace == *metadata.namespace
                && controller
                    .is_none_or(|controller| *controller.uid == *metadata.uid || is_injected("OthersTaken"))
        };
        let workloads = all.into_iter().filter(|(_, view)| is_concerned(view));
        let workloads = workloads.map(|(child, view)| Workload {
            pods: match child {
                Child::Deployment => {
                    let sets = (pods.replica_sets)(&view.uid);
                    sets.iter().flat_map(|set| (pods.of)(&set.uid)).collect()
                }
                _ => (pods.of)(&view.uid),
            },
            child,
            view,
        });
        let child = united.spec.child().map(|(child, _)| resource(child));
        Self {
            workloads: workloads.collect(),
            revisions: revisions_of(metadata, &united.spec.selector, revisions),
            child_api_version: child.and_then(|resource| served.api_version(resource).ok()),
        }
    }

    /// Plans the UnitedDeployment.
    pub fn plan(
        &self,
        united: &UnitedDeployment,
        api_version: &str,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            united,
            api_version,
            child_api_version: self.child_api_version.as_deref(),
            workloads: &self.workloads,
            revisions: &self.revisions,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}
