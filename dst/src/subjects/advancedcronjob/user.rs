//! Users of an AdvancedCronJob.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    edit::Edit,
    start::{CRON_JOBS, JOBS, Start, manifest},
};
use crate::engine::{
    cluster::Cluster,
    subject::User,
    user::{self, insist},
    verdict::Violation,
};

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/advancedcronjobs";
/// The same objects in the version that is converted.
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/advancedcronjobs";
const JOBS_PATH: &str = "/apis/batch/v1/namespaces/default/jobs";
/// A job of a schedule that is due every ten seconds is there after this long at the latest, when nothing fails.
const PROMPTLY: Duration = Duration::from_secs(90);

/// Users of one AdvancedCronJob.
pub struct CronUser {
    /// The object when it is created.
    pub start: Start,
    /// Seconds that the fastest of all clocks is ever fast.
    pub ahead: i64,
}

impl User for CronUser {
    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        // Until a manager answers for it.
        let request = Request::new(Method::Post, PATH, Some(&manifest(&self.start)));
        insist(cluster, request).map(|_| ()).boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            let edit = Edit::deserialize(change)?;
            let (path, spec) = match &edit {
                Edit::Schedule(text) => (PATH, json!({"schedule": text})),
                Edit::Policy(policy) => (PATH, json!({"concurrencyPolicy": policy})),
                Edit::Paused(paused) => (PATH, json!({"paused": paused})),
                Edit::Limits(well, badly) => (
                    OLDER,
                    json!({"successfulJobsHistoryLimit": well, "failedJobsHistoryLimit": badly}),
                ),
                Edit::Deadline(seconds) => (OLDER, json!({"startingDeadlineSeconds": seconds})),
                Edit::Delete(place) => return Ok(delete(cluster, *place).await),
                Edit::Skew(seconds) => {
                    cluster.look(|state| state.skew = *seconds);
                    return Ok(true);
                }
            };
            Ok(user::patch(cluster, &format!("{path}/tick"), &json!({"spec": spec})).await)
        }
        .boxed()
    }

    /// A schedule that goes on creates a job within seconds. One whose manager is on a slower machine than another one was
    /// waits until the clock there has caught up.
    fn probe<'a>(&'a self, cluster: &'a Arc<Cluster>) -> Option<BoxFuture<'a, Option<Violation>>> {
        Some(
            async move {
                let is_behind = cluster.look(|state| {
                    let skew = state.leader().and_then(|leader| state.skews.get(&leader).copied());
                    skew.is_none_or(|skew| skew < self.ahead)
                });
                if is_behind {
                    return None;
                }
                let before = made(cluster);
                let go = json!({"spec": {"paused": false, "schedule": "@every 10s", "concurrencyPolicy": "Allow",
                    "startingDeadlineSeconds": null}});
                if !user::patch(cluster, &format!("{PATH}/tick"), &go).await {
                    return None;
                }
                sleep(PROMPTLY).await;
                let after = made(cluster);
                let stop = json!({"spec": {"paused": true}});
                user::patch(cluster, &format!("{PATH}/tick"), &stop).await;
                (after == before).then(|| Violation {
                    oracle: "the latest due activation has a job",
                    what: format!("no job in {PROMPTLY:?}, after {before}"),
                })
            }
            .boxed(),
        )
    }
}

/// How many jobs there ever were.
fn made(cluster: &Arc<Cluster>) -> usize {
    cluster.with(|state| state.mirror.of(JOBS).objects.len())
}

/// Deletes a job with its pods. False if there is none.
async fn delete(cluster: &Arc<Cluster>, place: u8) -> bool {
    let job = cluster.look(|state| {
        state.mirror.of(CRON_JOBS).now().next()?;
        state.object_at(JOBS, place)
    });
    let Some(job) = job else { return false };
    let options = json!({"propagationPolicy": "Background"});
    let path = format!("{JOBS_PATH}/{}", job.name);
    insist(cluster, Request::new(Method::Delete, &path, Some(&options))).await
}
