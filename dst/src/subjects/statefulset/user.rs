//! What users do to a StatefulSet.

use super::bystanders;
use super::edit::{Deletion, Edit};
use super::manifest::{claim_templates, class, policy, reserved, retention, rolling_update, set};
use super::start::{CLASS, STATEFULSETS, Start};
use crate::rules::prelude::*;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets";
/// The same StatefulSets in the version that is converted.
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/statefulsets";
const CLASSES_PATH: &str = "/apis/storage.k8s.io/v1/storageclasses";
/// So many seconds the one before may take until it is gone.
const PATIENCE: u32 = 300;

/// Users of one StatefulSet, the systems that answer its hooks, and those who make pods beside it.
pub struct StatefulSetUser {
    /// Seed of the scenario.
    pub seed: u64,
    /// The StatefulSet when it is created.
    pub start: Start,
}

impl Users for StatefulSetUser {
    type Edit = Edit;

    fn gates(&self) -> Vec<&'static str> {
        self.start.gates()
    }

    fn attend(&self, cluster: &Arc<Cluster>) {
        self.start.hooks().attend(cluster, self.seed);
        tokio::spawn(bystanders::clear(cluster.clone(), self.seed));
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        if let Some(growth) = self.start.claims.and_then(|claims| claims.resized) {
            user::create(cluster, CLASSES_PATH, &class(growth)).await;
        }
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        // Until a manager answers for it.
        user::create(cluster, PATH, &set(&self.start)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        self::edit(cluster, &self.start, edit).await
    }
}

/// Changes the StatefulSet, or pods. False if that is refused, or means nothing now.
async fn edit(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> bool {
    match edit {
        Edit::Delete(deletion) => return delete(cluster, *deletion).await,
        Edit::Create => return create(cluster, start).await,
        Edit::Orphan(ordinal) => return bystanders::create(cluster, *ordinal, "web").await,
        Edit::Foreign(ordinal) => return bystanders::create(cluster, *ordinal, "theirs").await,
        Edit::Expansion(allowed) => {
            let patch = json!({"allowVolumeExpansion": allowed});
            return user::patch(cluster, &format!("{CLASSES_PATH}/{CLASS}"), &patch).await;
        }
        Edit::MarkPod(place) => {
            let patch = json!({"metadata": {"labels": {"apps.kruise.io/specified-delete": "true"}}});
            return user::touch(cluster, *place, &patch, "").await;
        }
        _ => {}
    }
    let Some(patch) = patch(cluster, start, edit) else {
        return false;
    };
    // Some is written in the older version: all it does not name must survive.
    let sets = match edit {
        Edit::Annotation(_) | Edit::Scale(_) | Edit::MinReady(_) => OLDER,
        _ => PATH,
    };
    user::patch(cluster, &format!("{sets}/web"), &patch).await
}

/// What an edit changes of the StatefulSet; nothing if there is none.
fn patch(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> Option<Value> {
    let rolling =
        |member: &str, value: Value| json!({"spec": {"updateStrategy": {"rollingUpdate": {member: value}}}});
    let mut containers = cluster.look(|state| {
        let set = statefulset(&state.mirror)?;
        Some(set.value()["spec"]["template"]["spec"]["containers"].clone())
    })?;
    let mut container = |change: &dyn Fn(&mut Value)| {
        change(&mut containers[0]);
        json!({"spec": {"template": {"spec": {"containers": containers.take()}}}})
    };
    Some(match edit {
        Edit::Image(number) => container(&|one| one["image"] = format!("web:{number}").into()),
        Edit::Env(number) => container(&|one| one["env"][0]["value"] = number.to_string().into()),
        Edit::Annotation(number) => {
            json!({"spec": {"template": {"metadata": {"annotations": {"team": number.to_string()}}}}})
        }
        Edit::Scale(replicas) => json!({"spec": {"replicas": replicas}}),
        Edit::Partition(number) => rolling("partition", (*number).into()),
        Edit::MaxUnavailable(text) => rolling("maxUnavailable", int_or_string(text)),
        Edit::ScaleMaxUnavailable(text) if text.is_empty() => {
            json!({"spec": {"scaleStrategy": {"maxUnavailable": null}}})
        }
        Edit::ScaleMaxUnavailable(text) => {
            json!({"spec": {"scaleStrategy": {"maxUnavailable": int_or_string(text)}}})
        }
        Edit::Paused(paused) => rolling("paused", (*paused).into()),
        Edit::Policy(to) => rolling("podUpdatePolicy", policy(*to).into()),
        Edit::Reserve(entries) => json!({"spec": {"reserveOrdinals": reserved(entries)}}),
        Edit::First(first) => json!({"spec": {"ordinals": {"start": first}}}),
        Edit::MinReady(seconds) => rolling("minReadySeconds", (*seconds).into()),
        Edit::OnDelete(true) => {
            json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}})
        }
        Edit::OnDelete(false) => {
            json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(start)}}})
        }
        Edit::Retention(when_scaled, when_deleted) => {
            json!({"spec": {"persistentVolumeClaimRetentionPolicy": retention(*when_scaled, *when_deleted)}})
        }
        Edit::ClaimSize(size) => {
            json!({"spec": {"volumeClaimTemplates": claim_templates(*size, start.resizes())}})
        }
        Edit::Delete(_)
        | Edit::Create
        | Edit::Orphan(_)
        | Edit::Foreign(_)
        | Edit::Expansion(_)
        | Edit::MarkPod(_) => {
            return None;
        }
    })
}

async fn delete(cluster: &Arc<Cluster>, deletion: Deletion) -> bool {
    let policy = match deletion {
        Deletion::Background => "Background",
        Deletion::Foreground => "Foreground",
        Deletion::Orphan => "Orphan",
    };
    let options = json!({"propagationPolicy": policy});
    let request = Request::new(Method::Delete, &format!("{PATH}/web"), Some(&options));
    insist(cluster, request).await
}

/// Creates it anew, once the one before is gone.
async fn create(cluster: &Arc<Cluster>, start: &Start) -> bool {
    for _ in 0..PATIENCE {
        match cluster.look(|state| statefulset(&state.mirror).map(|set| set.is_going())) {
            Some(false) => return false,
            Some(true) => {}
            None => {
                let request = Request::new(Method::Post, PATH, Some(&set(start)));
                if insist(cluster, request).await {
                    return true;
                }
            }
        }
        sleep(Duration::from_secs(1)).await;
    }
    false
}

/// The StatefulSet.
fn statefulset(mirror: &Mirror) -> Option<&Arc<Object>> {
    mirror.of(STATEFULSETS).now().next()
}
