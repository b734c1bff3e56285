//! What users do to a UnitedDeployment, to its workloads and beside them.

use super::start::{BOSS, Edit, FLEET, SUBSET, Start, UNITED, foreign, pods, subset, subsets};
use crate::engine::user::create_once_free;
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;

const NAMESPACE: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Users of one UnitedDeployment.
pub struct UnitedDeploymentUser {
    /// The UnitedDeployment when it is created.
    pub start: Start,
}

impl Users for UnitedDeploymentUser {
    type Edit = Edit;

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        let boss = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": BOSS}});
        user::create(cluster, MAPS, &boss).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        let united = self.start.united();
        // Until a manager answers for it.
        user::create(cluster, &all(), &united).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let path = fleet();
        let spec = match edit {
            Edit::Image(image) => template(cluster, Some(*image), None),
            Edit::Env(mode) => template(cluster, None, Some(*mode)),
            Edit::Scale(replicas) => {
                let scale = json!({"spec": {"replicas": replicas}});
                return user::patch(cluster, &format!("{path}/scale"), &scale).await;
            }
            Edit::Topology(wanted) => json!({"topology": {"subsets": subsets(wanted)},
                "updateStrategy": {"manualUpdate": {"partitions": null}}}),
            Edit::Partition(number, pods) => {
                json!({"updateStrategy": {"manualUpdate": {"partitions": {subset(*number): pods}}}})
            }
            Edit::Everywhere => json!({"updateStrategy": {"manualUpdate": {"partitions": null}}}),
            Edit::ChildReplicas(number, replicas) => {
                return change_child(cluster, *number, &json!({"spec": {"replicas": replicas}})).await;
            }
            Edit::ChildPartition(number, pods) => {
                let strategy = json!({"rollingUpdate": {"partition": pods}});
                return change_child(cluster, *number, &json!({"spec": {"updateStrategy": strategy}})).await;
            }
            Edit::DeleteChild(number) => {
                let Some(path) = child(cluster, *number) else {
                    return false;
                };
                return user::delete(cluster, &path).await;
            }
            Edit::Foreign(number) => return create_foreign(cluster, *number).await,
            Edit::Replace(orphans) => return self.replace(cluster, *orphans).await,
        };
        user::patch(cluster, &path, &json!({"spec": spec})).await
    }
}

impl UnitedDeploymentUser {
    async fn replace(&self, cluster: &Arc<Cluster>, orphans: bool) -> bool {
        let policy = if orphans { "Orphan" } else { "Background" };
        let options = json!({"propagationPolicy": policy});
        let delete = Request::new(Method::Delete, &fleet(), Some(&options));
        insist(cluster, delete).await && create_once_free(cluster, &all(), &self.start.united()).await
    }
}

/// Path of all UnitedDeployments.
fn all() -> String {
    format!("{NAMESPACE}/{}", UNITED.plural)
}

/// Path of the UnitedDeployment.
fn fleet() -> String {
    format!("{}/{FLEET}", all())
}

/// The template with another image, or another value of the variable; the other one stays.
fn template(cluster: &Arc<Cluster>, image: Option<u32>, mode: Option<u32>) -> Value {
    let container = "/spec/template/cloneSetTemplate/spec/template/spec/containers/0";
    let now = cluster.look(|state| {
        let united = state.mirror.of(UNITED).named(FLEET)?;
        united.value().pointer(container).cloned()
    });
    let now = now.unwrap_or_default();
    let number = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        let number = text.rsplit(':').next().and_then(|text| text.parse().ok());
        number.unwrap_or(0)
    };
    let image = image.unwrap_or_else(|| number(&now["image"]));
    let mode = mode.unwrap_or_else(|| number(&now["env"][0]["value"]));
    json!({"template": {"cloneSetTemplate": {"spec": {"template": {"spec": pods(image, mode)}}}}})
}

/// The path of the workload of a subset, if there is one.
fn child(cluster: &Arc<Cluster>, number: u8) -> Option<String> {
    let name = subset(number);
    cluster.look(|state| {
        let united = state.mirror.of(UNITED).named(FLEET)?;
        let mut sets = state.mirror.of(CLONESETS).now();
        let set = sets.find(|set| set.owner() == &*united.uid && set.label(SUBSET) == name)?;
        Some(format!("{NAMESPACE}/{}/{}", CLONESETS.plural, set.name))
    })
}

async fn change_child(cluster: &Arc<Cluster>, number: u8, change: &Value) -> bool {
    match child(cluster, number) {
        Some(path) => user::patch(cluster, &path, change).await,
        None => false,
    }
}

async fn create_foreign(cluster: &Arc<Cluster>, number: u8) -> bool {
    let boss = cluster.look(|state| Some(state.mirror.of(CONFIGMAPS).named(BOSS)?.uid.clone()));
    let Some(boss) = boss else {
        return false;
    };
    let path = format!("{NAMESPACE}/{}", CLONESETS.plural);
    let foreign = foreign(number, &boss);
    user::create(cluster, &path, &foreign).await
}
