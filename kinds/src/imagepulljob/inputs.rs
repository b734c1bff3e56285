//! The input of a plan of an ImagePullJob: its nodes and secrets, read from the caches or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{
    cloneset::{self, CloneSet},
    definition::Kind,
    imagepulljob::ImagePullJob,
    meta::OwnerReference,
    nodeimage::NodeImage,
    statefulset::{self, StatefulSet},
};
use kruise_frame::registration::Setup;
use kruise_plan_kit::{Explain, Memory, Plan};
use kruise_plan_nodes::imagepulljob::{
    Copies, Nodes, Options, Snapshot, Workload, in_update_order, of_pods, plan, targets,
};
use kruise_views::PodView;
use kube_cache::{ObjectKey, SharedInformer};

use super::ImagePullJobs;
use crate::cloneset::cached::CLONESETS;
use crate::images::{CopiesOf, NodesOf};
use crate::statefulset::cached::STATEFULSETS;
use kruise_runtime::parsed::Parsed;

/// The nodes of one ImagePullJob, and the secrets of the cluster.
pub struct Inputs<'a> {
    nodes: Vec<Arc<NodeImage>>,
    unlisted: Vec<String>,
    secrets: Box<dyn Copies + 'a>,
}

impl<'a> Inputs<'a> {
    /// The nodes of a job, among these. The pods are those of its namespace.
    pub fn new(
        job: &ImagePullJob,
        nodes: &dyn Nodes,
        pods: Vec<Arc<PodView>>,
        workload: Option<Workload<'_>>,
        secrets: Box<dyn Copies + 'a>,
        now: Timestamp,
    ) -> Self {
        let pods = in_update_order(workload, of_pods(&job.spec, pods), now);
        let of_pods: Vec<&str> = pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
        let (nodes, unlisted) = targets(&job.spec, nodes, &of_pods);
        Self {
            nodes,
            unlisted,
            secrets,
        }
    }

    /// Plans the ImagePullJob.
    pub fn plan(
        &self,
        job: &ImagePullJob,
        (api_version, options): (&str, Options<'_>),
        changed_after_end: bool,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            job,
            api_version,
            nodes: &self.nodes,
            unlisted: &self.unlisted,
            secrets: &*self.secrets,
            changed_after_end,
            options,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}

/// The workloads that jobs may be created for.
pub struct Orders {
    clonesets: SharedInformer<Parsed<CloneSet>>,
    statefulsets: SharedInformer<Parsed<StatefulSet>>,
}

impl Orders {
    pub(super) fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            clonesets: setup.cache(&CLONESETS),
            statefulsets: setup.cache(&STATEFULSETS),
        }
    }
}

impl ImagePullJobs {
    pub(super) fn options(&self) -> Options<'_> {
        Options {
            agent_namespace: &self.agent_namespace,
            sees_copies: self.sees_copies,
            kept_seconds: self.kept_seconds,
        }
    }

    /// Reads the caches.
    pub(super) fn read_inputs(&self, job: &ImagePullJob, now: Timestamp) -> Inputs<'_> {
        let namespace = &job.metadata.namespace;
        let pods = match &job.spec.pod_selector {
            Some(_) => self.pods.snapshot().list(namespace),
            None => Vec::new(),
        };
        let controller = job.metadata.controller();
        let named = |kind| controller.filter(|owner| is_of(owner, kind));
        let key = |name: &str| ObjectKey::new(namespace.as_str(), name);
        let cloneset =
            named(&cloneset::KIND).and_then(|owner| self.orders.clonesets.snapshot().get(&key(&owner.name)));
        let statefulset = named(&statefulset::KIND)
            .and_then(|owner| self.orders.statefulsets.snapshot().get(&key(&owner.name)));
        let cloneset = cloneset.as_ref().and_then(|set| set.object.as_ref().ok());
        let statefulset = statefulset.as_ref().and_then(|set| set.object.as_ref().ok());
        let workload = cloneset
            .map(Workload::CloneSet)
            .or(statefulset.map(Workload::StatefulSet));
        let secrets = Box::new(CopiesOf(&self.secrets));
        Inputs::new(job, &NodesOf(&self.nodes), pods, workload, secrets, now)
    }
}

fn is_of(owner: &OwnerReference, kind: &Kind) -> bool {
    owner.kind == kind.kind && owner.group() == kind.group
}
