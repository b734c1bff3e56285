//! Explains the plan of a WorkloadSpread: what each subset has, why a pod is where it is, and what waits.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    names::{APPS_GROUP, workloadspread::WORKLOADS},
    path::segment,
    workloadspread::{KIND, WorkloadSpread},
};
use kruise_frame::{
    explain::{Request, read_needs, workload::Cluster},
    workloads::Reader,
};
use kruise_plan_kit::{
    Explain, Memory, ResourceId, spread,
    workloads::{Aspect, Known, Workload, chain},
};
use kruise_plan_spread::workloadspread::Nodes;
use kruise_runtime::ApiError;
use kruise_views::{NodeView, OwnerView, PodView, WorkloadView};

use crate::workloadspread::{Inputs, before};

/// Explains a WorkloadSpread, or one pod of its target.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, spread) = Cluster::read::<Arc<WorkloadSpread>>(request, &KIND).await?;
    let nodes = Listed(cluster.list_all(ResourceId::NODES).await?);
    let pods = cluster.pods().await?;
    let replica_sets: Vec<Arc<WorkloadView>> = cluster.list(ResourceId::REPLICA_SETS).await?;
    let reader = Reader::new(request.client.clone(), request.manager_namespace);
    let listed = reader.listed(WORKLOADS, spread::listed).await?;
    let workloads = Workloads {
        request,
        cluster: &cluster,
        reader: &reader,
    };
    let (read, stored) = workloads.of(&spread, &pods.views).await?;
    // Of the others only names count.
    let all: Vec<Arc<WorkloadSpread>> = cluster.list(kruise_api::workloadspread::RESOURCE).await?;
    let before = before(&spread, all.iter().map(|other| &**other));
    let now = request.client.now();
    let planned = |memory: &Memory| {
        let inputs = Inputs {
            spread: &spread,
            known: &|workload, _| read.get(workload).cloned().unwrap_or(Known::Unreadable),
            stored: &|_| stored.clone(),
            pods_of: &|uid| of_owner(&pods.views, uid, |pod| pod.controller.as_deref()),
            all_pods: &|| pods.views.clone(),
            replica_sets_of: &|uid| of_owner(&replica_sets, uid, |set| set.controller.as_deref()),
            nodes: &nodes,
            listed: &listed,
            before: &before,
        };
        let found = inputs.find();
        (inputs.plan_of(&found, memory, Explain::Yes, now), found.pods)
    };
    let mut memory = Memory::default();
    let (mut plan, own) = planned(&memory);
    if !plan.needs.is_empty() {
        read_needs(request.client, &cluster.served, &plan.needs, &mut memory).await?;
        plan = planned(&memory).0;
    }
    cluster.explain(&KIND, (pods, &own), None, plan).await
}

/// The objects with this controller.
fn of_owner<T>(objects: &[Arc<T>], uid: &str, controller: impl Fn(&T) -> Option<&OwnerView>) -> Vec<Arc<T>> {
    let is_of = |object: &&Arc<T>| controller(object).is_some_and(|owner| *owner.uid == *uid);
    objects.iter().filter(is_of).cloned().collect()
}

/// Reads workloads.
struct Workloads<'c> {
    request: &'c Request<'c>,
    cluster: &'c Cluster<'c>,
    reader: &'c Reader,
}

impl Workloads<'_> {
    /// The target, and what is between it and pods where its kind may own other objects; and the target with all of its
    /// numbers.
    async fn of(
        &self,
        spread: &WorkloadSpread,
        pods: &[Arc<PodView>],
    ) -> anyhow::Result<(BTreeMap<Workload, Known>, Known)> {
        let mut read = BTreeMap::new();
        let Some(target) = &spread.spec.target_ref else {
            return Ok((read, Known::Gone));
        };
        let target = Workload::new(target.group(), &target.kind, &target.name);
        read.insert(target.clone(), self.read(&target).await?);
        let is_direct = target.owns_pods_by_itself() || target.group_kind() == ("batch", "Job");
        if !is_direct {
            for owner in pods.iter().filter_map(|pod| pod.controller.as_deref()) {
                loop {
                    let known =
                        |workload: &Workload, _: Aspect| read.get(workload).cloned().unwrap_or(Known::NotYet);
                    let Some(missing) = chain(owner, &known).missing else {
                        break;
                    };
                    let found = self
                        .reader
                        .read(self.request.namespace, &missing, Aspect::Owner)
                        .await;
                    read.insert(missing, found.unwrap_or(Known::Unreadable));
                }
            }
        }
        let filter = spread.spec.target_filter.as_ref();
        let has_paths = filter.is_some_and(|filter| !filter.replicas_path_list.is_empty());
        let stored = if has_paths && read.contains_key(&target) {
            self.reader
                .read(self.request.namespace, &target, Aspect::Scale)
                .await?
        } else {
            Known::NotYet
        };
        Ok((read, stored))
    }

    /// A target, with its template if its kind has one.
    async fn read(&self, target: &Workload) -> anyhow::Result<Known> {
        let namespace = self.request.namespace;
        let resource = match target.group_kind() {
            ("apps", "Deployment") => ResourceId::DEPLOYMENTS,
            ("apps", "ReplicaSet") => ResourceId::REPLICA_SETS,
            ("apps", "StatefulSet") => ResourceId::APPS_STATEFULSETS,
            ("batch", "Job") => ResourceId::JOBS,
            (APPS_GROUP, "CloneSet") => kruise_api::cloneset::RESOURCE,
            (APPS_GROUP, "StatefulSet") => kruise_api::statefulset::RESOURCE,
            _ => return Ok(self.reader.read(namespace, target, Aspect::Scale).await?),
        };
        let Ok(collection) = self.cluster.served.collection(resource, Some(namespace)) else {
            return Ok(Known::Unreadable);
        };
        let path = format!("{collection}/{}", segment(&target.name));
        let found: Result<WorkloadView, ApiError> = self.request.client.get(&path).await;
        match found {
            Ok(mut found) => {
                // What does not say wants one pod.
                found.replicas.get_or_insert(1);
                Ok(Known::Found(Arc::new(found)))
            }
            Err(error) if error.is_not_found() => Ok(Known::Gone),
            Err(error) => Err(error.into()),
        }
    }
}

/// All nodes.
struct Listed(Vec<Arc<NodeView>>);

impl Nodes for Listed {
    fn get(&self, name: &str) -> Option<Arc<NodeView>> {
        self.0.iter().find(|node| *node.name == *name).cloned()
    }
}
