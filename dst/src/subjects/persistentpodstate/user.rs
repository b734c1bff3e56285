//! What users do to PersistentPodStates, to the annotations of the workload and to the labels of nodes.

use super::start::{
    Edit, Keys, OBJECT, STATES, Start, WORKLOAD, ZONE, asking, foreign, manifest, topology, withdrawn, zone,
};
use crate::engine::boot::NODES as NAMES;
use crate::rules::prelude::*;
use crate::subjects::statefulset::start::STATEFULSETS;

/// How long a node that registered has no zone, at most.
const LABELLED: Duration = Duration::from_secs(3);

/// Users of the PersistentPodState of one scenario, and who gives nodes their zones.
impl Users for Start {
    type Edit = Edit;
    const REGISTERS: bool = true;

    fn attend(&self, cluster: &Arc<Cluster>) {
        tokio::spawn(label(cluster.clone()));
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        give_zones(cluster).await;
        if self.at_first && !self.asked {
            create(cluster, &manifest(self)).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let (own, of_workload) = (STATES.one(OBJECT), STATES.one(WORKLOAD));
        let workload = STATEFULSETS.one(WORKLOAD);
        let (path, patch) = match edit {
            Edit::Create => return create(cluster, &manifest(self)).await,
            Edit::Delete => return user::delete(cluster, &own).await,
            Edit::Keys(required, preferred) => (own, json!({"spec": topology(*required, *preferred)})),
            Edit::Ask(required, preferred) => (workload, asking(*required, *preferred, self.annotated)),
            Edit::Withdraw => (workload, withdrawn()),
            Edit::Spoil(required) => {
                let keys = topology(*required, Keys::None)["requiredPersistentTopology"].take();
                (of_workload, json!({"spec": {"requiredPersistentTopology": keys}}))
            }
            Edit::Remove => return user::delete(cluster, &of_workload).await,
            Edit::Foreign => return create(cluster, &foreign()).await,
            Edit::Unlabel(number) => {
                let name = NAMES[usize::from(*number) % NAMES.len()];
                return set_zone(cluster, name, &Value::Null).await;
            }
        };
        user::patch(cluster, &path, &patch).await
    }
}

async fn create(cluster: &Arc<Cluster>, state: &Value) -> bool {
    user::create(cluster, &STATES.in_default(), state).await
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
    user::patch(cluster, &format!("{}/{node}", NODES.path()), &patch).await
}
