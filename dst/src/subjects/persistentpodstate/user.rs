//! What users do to PersistentPodStates, to the annotations of the workload and to the labels of nodes.

use super::start::{
    Edit, Keys, OBJECT, Start, WORKLOAD, ZONE, asking, foreign, manifest, topology, withdrawn, zone,
};
use crate::engine::boot::NODES as NAMES;
use crate::rules::prelude::*;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/persistentpodstates";
const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets";
/// How long a node that registered has no zone, at most.
const LABELLED: Duration = Duration::from_secs(3);

/// Users of the PersistentPodState of one scenario, and who gives nodes their zones.
pub struct StateUser {
    /// The PersistentPodState when it is created.
    pub start: Start,
}

impl Users for StateUser {
    type Edit = Edit;
    const REGISTERS: bool = true;

    fn attend(&self, cluster: &Arc<Cluster>) {
        tokio::spawn(label(cluster.clone()));
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        give_zones(cluster).await;
        if self.start.at_first && !self.start.asked {
            create(cluster, &manifest(&self.start)).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
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
    user::create(cluster, PATH, state).await
}

async fn delete(cluster: &Arc<Cluster>, path: &str) -> bool {
    user::delete(cluster, path).await
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
