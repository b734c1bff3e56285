//! Users of an AdvancedCronJob.

use super::start::{CRON_JOBS, Edit, Start, manifest};
use crate::rules::prelude::*;

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
        user::create(cluster, &CRON_JOBS.in_default(), &manifest(&self.start)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let (of, spec) = match edit {
            Edit::Schedule(text) => (CRON_JOBS, json!({"schedule": text})),
            Edit::Policy(policy) => (CRON_JOBS, json!({"concurrencyPolicy": policy})),
            Edit::Paused(paused) => (CRON_JOBS, json!({"paused": paused})),
            Edit::Limits(well, badly) => {
                let limits = json!({"successfulJobsHistoryLimit": well, "failedJobsHistoryLimit": badly});
                (CRON_JOBS.older(), limits)
            }
            Edit::Deadline(seconds) => (CRON_JOBS.older(), json!({"startingDeadlineSeconds": seconds})),
            Edit::Delete(place) => return delete(cluster, *place).await,
            Edit::Skew(seconds) => {
                cluster.look(|state| state.skew = *seconds);
                return true;
            }
        };
        user::patch(cluster, &of.one("tick"), &json!({"spec": spec})).await
    }

    /// A schedule that goes on creates a job within seconds. One whose manager is on a slower machine than another
    /// one was waits until the clock there has caught up.
    async fn probe(&self, cluster: &Arc<Cluster>) -> Option<Violation> {
        let is_behind = cluster.look(|state| {
            let leader = state.leader();
            let skew = leader.and_then(|leader| state.skews.get(&leader).copied());
            skew.is_none_or(|skew| skew < self.ahead)
        });
        if is_behind {
            return None;
        }
        let made = || cluster.with(|state| state.mirror.of(JOBS).objects.len());
        let before = made();
        let go = json!({"spec": {"paused": false, "schedule": "@every 10s", "concurrencyPolicy": "Allow",
                    "startingDeadlineSeconds": null}});
        if !user::patch(cluster, &CRON_JOBS.one("tick"), &go).await {
            return None;
        }
        sleep(PROMPTLY).await;
        let after = made();
        let stop = json!({"spec": {"paused": true}});
        user::patch(cluster, &CRON_JOBS.one("tick"), &stop).await;
        never!(Violation::of, "the latest due activation has a job",
            after == before => "no job in {PROMPTLY:?}, after {before}");
        None
    }
}

/// Deletes a job with its pods. False if there is none.
async fn delete(cluster: &Arc<Cluster>, place: u8) -> bool {
    let job = cluster.look(|state| {
        state.mirror.only(CRON_JOBS)?;
        state.object_at(JOBS, place)
    });
    let Some(job) = job else { return false };
    let options = json!({"propagationPolicy": "Background"});
    user::delete_as(cluster, &JOBS.one(&job.name), &options).await
}
