//! What users do to a StatefulSet.

use super::bystanders;
use super::edit::Edit;
use super::manifest::{claim_templates, class, reserved, retention, rolling_update, set};
use super::start::{CLASS, CLASSES, STATEFULSETS, Start};
use crate::rules::prelude::*;
use crate::subjects::templates::{annotation, image, on_delete, rolling, specified_delete, variable};

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
            user::create(cluster, &CLASSES.path(), &class(growth)).await;
        }
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        user::create(cluster, &STATEFULSETS.in_default(), &set(&self.start)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        self::edit(cluster, &self.start, edit).await
    }
}

/// Changes the StatefulSet, or pods. False if that is refused, or means nothing now.
async fn edit(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> bool {
    let path = STATEFULSETS.one("web");
    match edit {
        Edit::Delete(deletion) => {
            let options = json!({"propagationPolicy": deletion});
            return user::delete_as(cluster, &path, &options).await;
        }
        Edit::Create => return create(cluster, start).await,
        Edit::Orphan(ordinal) => return bystanders::create(cluster, *ordinal, "web").await,
        Edit::Foreign(ordinal) => return bystanders::create(cluster, *ordinal, "theirs").await,
        Edit::Expansion(allowed) => {
            let patch = json!({"allowVolumeExpansion": allowed});
            return user::patch(cluster, &format!("{}/{CLASS}", CLASSES.path()), &patch).await;
        }
        Edit::MarkPod(place) => return user::touch(cluster, *place, &specified_delete(), "").await,
        _ => {}
    }
    if cluster.look(|state| state.mirror.only(STATEFULSETS).is_none()) {
        return false;
    }
    // Some is written in the older version: all it does not name must survive.
    let older = STATEFULSETS.older().one("web");
    match edit {
        Edit::Annotation(_) | Edit::Scale(_) | Edit::MinReady(_) => {
            user::patch(cluster, &older, &patch(cluster, start, edit)).await
        }
        _ => user::patch(cluster, &path, &patch(cluster, start, edit)).await,
    }
}

/// What an edit changes of the StatefulSet; null if that is nothing.
fn patch(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> Value {
    match edit {
        Edit::Image(number) => image(cluster, STATEFULSETS, *number),
        Edit::Env(number) => variable(cluster, STATEFULSETS, *number),
        Edit::Annotation(number) => annotation("team", Some(*number)),
        Edit::Scale(replicas) => json!({"spec": {"replicas": replicas}}),
        Edit::Partition(number) => rolling("partition", *number),
        Edit::MaxUnavailable(text) => rolling("maxUnavailable", int_or_string(text)),
        Edit::ScaleMaxUnavailable(text) => {
            let limit = (!text.is_empty()).then(|| int_or_string(text));
            json!({"spec": {"scaleStrategy": {"maxUnavailable": limit}}})
        }
        Edit::Paused(paused) => rolling("paused", *paused),
        Edit::Policy(to) => rolling("podUpdatePolicy", json!(to)),
        Edit::Reserve(entries) => json!({"spec": {"reserveOrdinals": reserved(entries)}}),
        Edit::First(first) => json!({"spec": {"ordinals": {"start": first}}}),
        Edit::MinReady(seconds) => rolling("minReadySeconds", *seconds),
        Edit::OnDelete(is_on) => on_delete((!is_on).then(|| rolling_update(start))),
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
        | Edit::MarkPod(_) => Value::Null,
    }
}

/// Creates it anew, once the one before is gone.
async fn create(cluster: &Arc<Cluster>, start: &Start) -> bool {
    for _ in 0..PATIENCE {
        match cluster.look(|state| state.mirror.only(STATEFULSETS).map(|set| set.is_going())) {
            Some(false) => return false,
            Some(true) => {}
            None => {
                if user::create(cluster, &STATEFULSETS.in_default(), &set(start)).await {
                    return true;
                }
            }
        }
        sleep(Duration::from_secs(1)).await;
    }
    false
}
