//! Users of an AdvancedCronJob.

use super::edit::Edit;
use super::start::{CRON_JOBS, JOBS, Start, manifest};
use crate::rules::prelude::*;

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

impl Users for CronUser {
    type Edit = Edit;
    const HAS_TRIAL: bool = true;

    async fn create(&self, cluster: &Arc<Cluster>) {
        // Until a manager answers for it.
        user::create(cluster, PATH, &manifest(&self.start)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let (path, spec) = match edit {
            Edit::Schedule(text) => (PATH, json!({"schedule": text})),
            Edit::Policy(policy) => (PATH, json!({"concurrencyPolicy": policy})),
            Edit::Paused(paused) => (PATH, json!({"paused": paused})),
            Edit::Limits(well, badly) => (
                OLDER,
                json!({"successfulJobsHistoryLimit": well, "failedJobsHistoryLimit": badly}),
            ),
            Edit::Deadline(seconds) => (OLDER, json!({"startingDeadlineSeconds": seconds})),
            Edit::Delete(place) => return delete(cluster, *place).await,
            Edit::Skew(seconds) => {
                cluster.look(|state| state.skew = *seconds);
                return true;
            }
        };
        user::patch(cluster, &format!("{path}/tick"), &json!({"spec": spec})).await
    }

    /// A schedule that goes on creates a job within seconds. One whose manager is on a slower machine than another one was
    /// waits until the clock there has caught up.
    async fn probe(&self, cluster: &Arc<Cluster>) -> Option<Violation> {
        let is_behind = cluster.look(|state| {
            let skew = state
                .leader()
                .and_then(|leader| state.skews.get(&leader).copied());
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
        never!(Violation::of, "the latest due activation has a job",
            after == before => "no job in {PROMPTLY:?}, after {before}");
        None
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
    user::delete_as(cluster, &path, &options).await
}
