//! Explains the plan of a PodUnavailableBudget: how many of its pods may become unavailable, and what was allowed
//! already.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use kruise_api::podunavailablebudget::{KIND, PodUnavailableBudget};
use kruise_frame::{
    explain::{Request, workload::Cluster},
    workloads::Reader,
};
use kruise_plan_kit::{
    Explain,
    workloads::{Aspect, Known, Workload},
};

use crate::podunavailablebudget::Inputs;
use kruise_runtime::parsed::Parsed;

/// Explains a budget, or one pod of it.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, budget) = Cluster::read::<PodUnavailableBudget>(request, &KIND).await?;
    let budgets: Vec<Arc<Parsed<PodUnavailableBudget>>> =
        cluster.list(kruise_api::podunavailablebudget::RESOURCE).await?;
    let pods = cluster.pods().await?;
    let reader = Reader::new(request.client.clone(), request.manager_namespace);
    let mut read: BTreeMap<Workload, Known> = BTreeMap::new();
    loop {
        let missing = {
            let known = |workload: &Workload, _: Aspect| read.get(workload).cloned().unwrap_or(Known::NotYet);
            let inputs = Inputs::new(&budget, &pods.views, &budgets, &known);
            inputs.missing().cloned()
        };
        let Some(missing) = missing else {
            break;
        };
        let known = reader.read(request.namespace, &missing, Aspect::Scale).await?;
        read.insert(missing, known);
    }
    let (plan, own) = {
        let known = |workload: &Workload, _: Aspect| read.get(workload).cloned().unwrap_or(Known::NotYet);
        let inputs = Inputs::new(&budget, &pods.views, &budgets, &known).as_new_as_budget(true);
        (
            inputs.plan(Explain::Yes, request.client.now()),
            inputs.pods().to_vec(),
        )
    };
    cluster.explain(&KIND, (pods, &own), None, plan).await
}
