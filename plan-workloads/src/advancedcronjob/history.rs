//! Jobs that ended long ago.

use kruise_api::advancedcronjob::{AdvancedCronJobSpec, Child};
use kruise_plan_kit::{ObjectWrites, Owner, Phase};
use kruise_views::{JobEnd, ScheduledJobView};

use super::{create::delete, runs::Runs};

/// Of the jobs that ended alike, oldest first, those beyond the limit.
pub(super) fn surplus<'a>(
    spec: &AdvancedCronJobSpec,
    runs: &Runs<'a>,
    end: JobEnd,
) -> Vec<&'a ScheduledJobView> {
    let limit = match end {
        JobEnd::Complete => spec.successful_jobs_history_limit,
        JobEnd::Failed => spec.failed_jobs_history_limit,
    };
    let Some(limit) = limit else {
        return Vec::new();
    };
    let kept = usize::try_from(limit).unwrap_or_default();
    let mut ended = runs.ended(end);
    ended.truncate(ended.len().saturating_sub(kept));
    ended
}

/// Deletes the oldest of those that ended well and of those that failed, unless one is all that shows its activation.
pub(super) fn prune(
    spec: &AdvancedCronJobSpec,
    runs: &Runs<'_>,
    owner: &Owner<'_>,
    child: Child,
) -> Vec<ObjectWrites> {
    let ends = [
        (JobEnd::Complete, "successfulJobsHistoryLimit"),
        (JobEnd::Failed, "failedJobsHistoryLimit"),
    ];
    let goes = ends.into_iter().flat_map(|(end, limit)| {
        let surplus = surplus(spec, runs, end);
        let recorded = surplus.into_iter().filter(|job| runs.is_recorded(job));
        recorded.map(move |job| (job, format!("{limit} keeps newer ones")))
    });
    let writes = goes.map(|(job, reason)| {
        let step = delete(owner, child, job, &reason);
        ObjectWrites::new(Phase::Cleanup, vec![step])
    });
    writes.collect()
}
