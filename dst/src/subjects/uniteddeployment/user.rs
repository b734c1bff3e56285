//! What users do to a UnitedDeployment, to its workloads and beside them.

use super::start::{BOSS, Edit, FLEET, SUBSET, Start, UNITED, foreign, pods, subset, subsets};
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;

/// Users of one UnitedDeployment.
impl Users for Start {
    type Edit = Edit;

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        let boss = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": BOSS}});
        user::create(cluster, &CONFIGMAPS.in_default(), &boss).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        user::create(cluster, &UNITED.in_default(), &self.united()).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let path = UNITED.one(FLEET);
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
                return change_child(cluster, *number, json!({"replicas": replicas})).await;
            }
            Edit::ChildPartition(number, pods) => {
                let strategy = json!({"rollingUpdate": {"partition": pods}});
                return change_child(cluster, *number, json!({"updateStrategy": strategy})).await;
            }
            Edit::DeleteChild(number) => match child(cluster, *number) {
                Some(path) => return user::delete(cluster, &path).await,
                None => return false,
            },
            Edit::Foreign(number) => return create_foreign(cluster, *number).await,
            Edit::Replace(orphans) => {
                let policy = if *orphans { "Orphan" } else { "Background" };
                return user::delete_as(cluster, &path, &json!({"propagationPolicy": policy})).await
                    && user::create_once_free(cluster, &UNITED.in_default(), &self.united()).await;
            }
        };
        user::patch(cluster, &path, &json!({"spec": spec})).await
    }
}

/// The template with another image, or another value of the variable; the other one stays.
fn template(cluster: &Arc<Cluster>, image: Option<u32>, mode: Option<u32>) -> Value {
    let container = "/spec/template/cloneSetTemplate/spec/template/spec/containers/0";
    let now = cluster.look(|state| {
        let united = state.mirror.of(UNITED).named(FLEET)?;
        united.value().pointer(container).cloned()
    });
    let now = now.unwrap_or_default();
    let number = |value: &Value| {
        let number = text(value).rsplit(':').next().and_then(|text| text.parse().ok());
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
        let set = state
            .mirror
            .owned(CLONESETS, united)
            .find(|set| set.label(SUBSET) == name)?;
        Some(CLONESETS.one(&set.name))
    })
}

async fn change_child(cluster: &Arc<Cluster>, number: u8, spec: Value) -> bool {
    match child(cluster, number) {
        Some(path) => user::patch(cluster, &path, &json!({"spec": spec})).await,
        None => false,
    }
}

async fn create_foreign(cluster: &Arc<Cluster>, number: u8) -> bool {
    let boss = cluster.look(|state| Some(state.mirror.of(CONFIGMAPS).named(BOSS)?.uid.clone()));
    match boss {
        Some(boss) => user::create(cluster, &CLONESETS.in_default(), &foreign(number, &boss)).await,
        None => false,
    }
}
