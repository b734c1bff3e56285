//! Explains the plan of a UnitedDeployment: what each subset has and is to have, and what holds it.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::{BoxFuture, FutureExt};
use kruise_api::{
    names::uniteddeployment::SUBSET_NAME,
    uniteddeployment::{Child, KIND, UnitedDeployment},
};
use kruise_frame::explain::{Request, workload::Cluster};
use kruise_plan_kit::{Explain, Memory, ResourceId};
use kruise_plan_united::resource;
use kruise_views::{MetadataView, OwnerView, PodView, SubsetView};

use crate::uniteddeployment::{Inputs, Pods};

/// Explains a UnitedDeployment.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, united) = Cluster::read::<UnitedDeployment>(request, &KIND).await?;
    let mut all: Vec<(Child, Arc<SubsetView>)> = Vec::new();
    for child in Child::ALL {
        if cluster.served.version(resource(child)).is_some() {
            let listed: Vec<Arc<SubsetView>> = cluster.list(resource(child)).await?;
            let of_subsets = listed
                .into_iter()
                .filter(|view| view.labels.contains_key(SUBSET_NAME));
            all.extend(of_subsets.map(|view| (child, view)));
        }
    }
    let replica_sets: Vec<Arc<MetadataView>> = cluster.list(ResourceId::REPLICA_SETS).await?;
    let (pods, revisions) = (cluster.pods().await?, cluster.revisions().await?);
    let inputs = {
        let of = by_owner(&pods.views, |pod| pod.controller.as_deref());
        let sets = by_owner(&replica_sets, |set| set.controller.as_deref());
        let found = Pods {
            of: &|uid| of.get(uid).cloned().unwrap_or_default(),
            replica_sets: &|uid| sets.get(uid).cloned().unwrap_or_default(),
        };
        Inputs::new(&united, &cluster.served, all, &found, revisions)
    };
    let api_version = cluster
        .served
        .api_version(kruise_api::uniteddeployment::RESOURCE)?;
    let (memory, now) = (Memory::default(), request.client.now());
    let plan = inputs.plan(&united, &api_version, &memory, Explain::Yes, now);
    let own: Vec<Arc<PodView>> = inputs
        .workloads
        .iter()
        .filter(|workload| workload.view.controller.is_some())
        .flat_map(|workload| workload.pods.iter().cloned())
        .collect();
    cluster.explain(&KIND, (pods, &own), None, plan).await
}

/// Objects by the uid of their controlling owner.
fn by_owner<T>(
    objects: &[Arc<T>],
    controller: impl Fn(&T) -> Option<&OwnerView>,
) -> BTreeMap<Box<str>, Vec<Arc<T>>> {
    let mut all: BTreeMap<Box<str>, Vec<Arc<T>>> = BTreeMap::new();
    for object in objects {
        if let Some(owner) = controller(object) {
            all.entry(owner.uid.clone()).or_default().push(object.clone());
        }
    }
    all
}
