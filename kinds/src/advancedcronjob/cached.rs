//! The caches of AdvancedCronJobs and of the jobs that they create.

use kruise_api::advancedcronjob::{AdvancedCronJob, Child};
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::CacheId;
use kruise_runtime::parsed::Parsed;
use kruise_views::ScheduledJobView;
use kube_cache::Index;

/// AdvancedCronJobs in the served version.
pub(super) const CRON_JOBS: CacheId<Parsed<AdvancedCronJob>> =
    CacheId::of("advancedcronjobs", kruise_api::advancedcronjob::RESOURCE).before(&[
        JOBS.name,
        PULLS.name,
        BROADCASTS.name,
    ]);

/// Jobs by the uid of their controlling owner.
pub(super) const JOBS_BY_OWNER: Index<ScheduledJobView> = Index::new("owner", |job| {
    job.controller.iter().map(|owner| owner.uid.clone()).collect()
});
/// Jobs of `batch`.
pub(super) const JOBS: CacheId<ScheduledJobView> =
    CacheId::of("jobs", ResourceId::JOBS).indexed(&[JOBS_BY_OWNER]);
/// ImageListPullJobs.
pub(super) const PULLS: CacheId<ScheduledJobView> =
    CacheId::of("imagelistpulljobs", kruise_api::imagelistpulljob::RESOURCE).indexed(&[JOBS_BY_OWNER]);
/// BroadcastJobs, as schedules see them.
pub(super) const BROADCASTS: CacheId<ScheduledJobView> =
    CacheId::of("broadcastjobs of schedules", kruise_api::broadcastjob::RESOURCE).indexed(&[JOBS_BY_OWNER]);

/// The cache of a kind of jobs.
pub(super) const fn cache(child: Child) -> &'static CacheId<ScheduledJobView> {
    match child {
        Child::Job => &JOBS,
        Child::ImageListPullJob => &PULLS,
        Child::BroadcastJob => &BROADCASTS,
    }
}
