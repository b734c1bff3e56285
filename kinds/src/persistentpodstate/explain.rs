//! Explains the plan of a PersistentPodState: which pods are recorded, and why others are not.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    names::APPS_GROUP,
    path::segment,
    persistentpodstate::{KIND, PersistentPodState},
};
use kruise_frame::{
    explain::{Request, read_needs, workload::Cluster},
    workloads::Reader,
};
use kruise_plan_kit::{
    Explain, Memory, ResourceId,
    workloads::{Aspect, Known, Workload},
};
use kruise_plan_podstate::persistentpodstate::Nodes;
use kruise_runtime::ApiError;
use kruise_views::{NodeView, PodView, WorkloadView};
use kube_cache::ObjectKey;

use crate::persistentpodstate::Inputs;
use kruise_runtime::parsed::Parsed;

/// Explains a PersistentPodState, or one pod of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, state) = Cluster::read::<Arc<PersistentPodState>>(request, &KIND).await?;
    let states: Vec<Arc<Parsed<Arc<PersistentPodState>>>> =
        cluster.list(kruise_api::persistentpodstate::RESOURCE).await?;
    let nodes = Listed(cluster.list_all(ResourceId::NODES).await?);
    let pods = cluster.pods().await?;
    let reader = Reader::new(request.client.clone(), request.manager_namespace);
    let allowed = reader.allowed().await?;
    let read = read_workloads(request, &cluster, &reader, &target_of(&state)).await?;
    let pods_of = |uid: &str| -> Vec<Arc<PodView>> {
        let is_of = |pod: &&Arc<PodView>| pod.controller.as_ref().is_some_and(|owner| *owner.uid == *uid);
        pods.views.iter().filter(is_of).cloned().collect()
    };
    let other = |workload: &Workload| {
        let is_other = |other: &&PersistentPodState| {
            other.metadata.name != state.metadata.name
                && other.metadata.deletion_timestamp.is_none()
                && target_of(other) == *workload
        };
        let mut others = states.iter().filter_map(|one| one.object.as_deref().ok());
        others.find(is_other).map(|other| other.metadata.name.clone())
    };
    let own = match read.get(&target_of(&state)) {
        Some(Known::Found(found)) => pods_of(&found.uid),
        _ => Vec::new(),
    };
    let (key, mut memory) = (ObjectKey::new(request.namespace, request.name), Memory::default());
    let mut plan = None;
    // Once for what is needed, and once with it.
    for _ in 0..2 {
        let planned = {
            let known =
                |workload: &Workload, _: Aspect| read.get(workload).cloned().unwrap_or(Known::Unreadable);
            let inputs = Inputs {
                key: &key,
                state: Some(&*state),
                known: &known,
                allowed: &allowed,
                start_ordinal: cluster.settings.gates.on("StatefulSetStartOrdinal"),
                pods_of: &pods_of,
                owners: Vec::new(),
                nodes: &nodes,
                other: &other,
            };
            inputs
                .plan(&memory, Explain::Yes, request.client.now())
                .unwrap_or_default()
        };
        read_needs(request.client, &cluster.served, &planned.needs, &mut memory).await?;
        let is_complete = planned.needs.is_empty();
        plan = Some(planned);
        if is_complete {
            break;
        }
    }
    cluster
        .explain(&KIND, (pods, &own), None, plan.unwrap_or_default())
        .await
}

fn target_of(state: &PersistentPodState) -> Workload {
    let target = &state.spec.target_ref;
    Workload::new(target.group(), &target.kind, &target.name)
}

/// The target, and the StatefulSets of this name.
async fn read_workloads(
    request: &Request<'_>,
    cluster: &Cluster<'_>,
    reader: &Reader,
    target: &Workload,
) -> anyhow::Result<BTreeMap<Workload, Known>> {
    let mut wanted = vec![target.clone()];
    wanted.extend(["apps", APPS_GROUP].map(|group| Workload::new(group, "StatefulSet", request.name)));
    let mut read = BTreeMap::new();
    for workload in wanted {
        let resource = match workload.group_kind() {
            ("apps", "StatefulSet") => Some(ResourceId::APPS_STATEFULSETS),
            (APPS_GROUP, "StatefulSet") => Some(kruise_api::statefulset::RESOURCE),
            _ => None,
        };
        let known = match resource {
            Some(resource) if cluster.served.version(resource).is_none() => Known::Unreadable,
            Some(resource) => {
                let collection = cluster.served.collection(resource, Some(request.namespace))?;
                let path = format!("{collection}/{}", segment(&workload.name));
                numbered(request.client.get(&path).await)?
            }
            None => reader.read(request.namespace, &workload, Aspect::Scale).await?,
        };
        read.insert(workload, known);
    }
    Ok(read)
}

/// A StatefulSet, which wants one pod if it does not say how many.
fn numbered(found: Result<WorkloadView, ApiError>) -> Result<Known, ApiError> {
    match found {
        Ok(mut found) => {
            found.replicas.get_or_insert(1);
            Ok(Known::Found(Arc::new(found)))
        }
        Err(error) if error.is_not_found() => Ok(Known::Gone),
        Err(error) => Err(error),
    }
}

/// All nodes.
struct Listed(Vec<Arc<NodeView>>);

impl Nodes for Listed {
    fn get(&self, name: &str) -> Option<Arc<NodeView>> {
        self.0.iter().find(|node| *node.name == *name).cloned()
    }

    fn any(&self, holds: &dyn Fn(&NodeView) -> bool) -> bool {
        self.0.iter().any(|node| holds(node))
    }
}
