//! What users do to PersistentPodStates, to the annotations of the workload and to the labels of nodes.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use kruise::manager::MatchConditions;
use kruise_runtime::Client;
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::start::{
    Edit, Keys, OBJECT, Start, WORKLOAD, ZONE, asking, foreign, manifest, topology, withdrawn, zone,
};
use crate::engine::{
    boot::NODES as NAMES,
    cluster::Cluster,
    oracles::NODES,
    process::ProcessId,
    subject::User,
    user::{self, insist},
};
use crate::subjects::registration;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/persistentpodstates";
const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets";
/// How long a node that registered has no zone, at most.
const LABELLED: Duration = Duration::from_secs(3);

/// Users of the PersistentPodState of one scenario, and who gives nodes their zones.
pub struct StateUser {
    /// The PersistentPodState when it is created.
    pub start: Start,
}

impl User for StateUser {
    fn attend(&self, cluster: &Arc<Cluster>) {
        tokio::spawn(label(cluster.clone()));
    }

    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            give_zones(cluster).await;
            if self.start.at_first && !self.start.asked {
                create(cluster, &manifest(&self.start)).await;
            }
        }
        .boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move { Ok(self.perform(cluster, &Edit::deserialize(change)?).await) }.boxed()
    }

    fn beside_manager(
        &self,
        cluster: &Arc<Cluster>,
        process: ProcessId,
        client: Client,
        desired: MatchConditions,
    ) -> Option<BoxFuture<'static, ()>> {
        Some(registration::register(cluster.clone(), process, client, desired).boxed())
    }
}

impl StateUser {
    /// False if that is refused, or means nothing now.
    async fn perform(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let (own, of_workload) = (format!("{PATH}/{OBJECT}"), format!("{PATH}/{WORKLOAD}"));
        let workload = format!("{SETS}/{WORKLOAD}");
        match edit {
            Edit::Create => create(cluster, &manifest(&self.start)).await,
            Edit::Delete => delete(cluster, &own).await,
            Edit::Keys(required, preferred) => {
                let patch = json!({"spec": topology(*required, *preferred)});
                user::patch(cluster, &own, &patch).await
            }
            Edit::Ask(required, preferred) => {
                let annotations = asking(*required, *preferred, self.start.annotated);
                user::patch(cluster, &workload, &annotations).await
            }
            Edit::Withdraw => user::patch(cluster, &workload, &withdrawn()).await,
            Edit::Spoil(required) => {
                let wanted = topology(*required, Keys::None);
                let patch =
                    json!({"spec": {"requiredPersistentTopology": wanted["requiredPersistentTopology"]}});
                user::patch(cluster, &of_workload, &patch).await
            }
            Edit::Remove => delete(cluster, &of_workload).await,
            Edit::Foreign => create(cluster, &foreign()).await,
            Edit::Unlabel(number) => {
                let Some(name) = NAMES.get(usize::from(*number) % NAMES.len()) else {
                    return false;
                };
                set_zone(cluster, name, &Value::Null).await
            }
        }
    }
}

async fn create(cluster: &Arc<Cluster>, state: &Value) -> bool {
    insist(cluster, Request::new(Method::Post, PATH, Some(state))).await
}

async fn delete(cluster: &Arc<Cluster>, path: &str) -> bool {
    insist(cluster, Request::new(Method::Delete, path, None)).await
}

/// Gives nodes that have none their zone, for ever.
async fn label(cluster: Arc<Cluster>) {
    loop {
        sleep(LABELLED).await;
        give_zones(&cluster).await;
    }
}

async fn give_zones(cluster: &Arc<Cluster>) {
    let bare: Vec<Arc<str>> = cluster.look(|state| {
        let nodes = state.mirror.of(NODES).now();
        let bare = nodes.filter(|node| !node.has_label(ZONE));
        bare.map(|node| node.name.clone()).collect()
    });
    for name in bare {
        set_zone(cluster, &name, &zone(&name).into()).await;
    }
}

async fn set_zone(cluster: &Arc<Cluster>, node: &str, zone: &Value) -> bool {
    let patch = json!({"metadata": {"labels": {ZONE: zone}}});
    user::patch(cluster, &format!("/api/v1/nodes/{node}"), &patch).await
}
