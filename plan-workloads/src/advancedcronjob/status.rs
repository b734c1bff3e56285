//! What is reported.

use std::collections::BTreeSet;

use kruise_api::advancedcronjob::{ActiveJob, AdvancedCronJobStatus, Child};
use kruise_plan_kit::{EventNote, StatusPatch, Target, Urgency, status_patch};

use super::{events, runs::Runs, snapshot::Snapshot};

/// Every change is one that people wait for.
pub(super) const URGENCY: Urgency<'static> = Urgency {
    members: &["type", "active", "lastScheduleTime"],
    settled: false,
};

/// The status as the jobs are now. References to jobs that are in the stored status stay as they are.
pub(super) fn of(
    snapshot: &Snapshot<'_>,
    runs: &Runs<'_>,
    child: Child,
    replaced: &BTreeSet<&str>,
) -> AdvancedCronJobStatus {
    let stored = &snapshot.cron.status;
    let active = runs.active().filter(|job| !replaced.contains(&*job.uid));
    let reference = active.map(|job| {
        let known = stored.active.iter().find(|known| known.uid == *job.uid);
        known.cloned().unwrap_or_else(|| ActiveJob {
            api_version: snapshot.job_api_version.unwrap_or(child.api_version()).to_owned(),
            kind: child.kind().to_owned(),
            namespace: job.namespace.to_string(),
            name: job.name.to_string(),
            uid: job.uid.to_string(),
            resource_version: job.resource_version.to_string(),
        })
    });
    AdvancedCronJobStatus {
        kind: Some(child.kind().to_owned()),
        active: reference.collect(),
        last_schedule_time: runs.last(),
    }
}

/// The write of a status.
pub(super) fn patch(snapshot: &Snapshot<'_>, status: &AdvancedCronJobStatus) -> Option<StatusPatch> {
    let metadata = &snapshot.cron.metadata;
    let target = Target {
        resource: kruise_api::advancedcronjob::RESOURCE,
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
    };
    let stored = Some(&snapshot.cron.status);
    status_patch(target, &metadata.resource_version, stored, status, URGENCY)
}

/// What became of the jobs that ran when the status was last written.
pub(super) fn news(snapshot: &Snapshot<'_>, runs: &Runs<'_>) -> Vec<EventNote> {
    let known = snapshot.cron.status.active.iter();
    let news = known.filter_map(|known| match runs.find(&known.uid) {
        Some(job) => Some(events::ended(&job.name, job.end?)),
        None => Some(events::missing(&known.name)),
    });
    news.collect()
}
