//! The caches of AdvancedCronJobs and of the jobs that they create.

use kruise_api::advancedcronjob::{AdvancedCronJob, Child};
use kruise_frame::parsed::Parsed;
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::CacheId;
use kruise_views::ScheduledJobView;
use kube_cache::Index;

/// AdvancedCronJobs in the served version.
pub(super) const CRON_JOBS: CacheId<Parsed<AdvancedCronJob>> =
    CacheId::of("advancedcronjobs", ResourceId::ADVANCED_CRON_JOBS).before(&[
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
    CacheId::of("imagelistpulljobs", ResourceId::IMAGE_LIST_PULL_JOBS).indexed(&[JOBS_BY_OWNER]);
/// BroadcastJobs, as schedules see them.
pub(super) const BROADCASTS: CacheId<ScheduledJobView> =
    CacheId::of("broadcastjobs of schedules", ResourceId::BROADCAST_JOBS).indexed(&[JOBS_BY_OWNER]);

/// The cache of a kind of jobs.
pub(super) const fn cache(child: Child) -> &'static CacheId<ScheduledJobView> {
    match child {
        Child::Job => &JOBS,
        Child::ImageListPullJob => &PULLS,
        Child::BroadcastJob => &BROADCASTS,
    }
}
