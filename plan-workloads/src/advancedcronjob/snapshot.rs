//! What a plan is made from.

use std::sync::Arc;

use jiff::tz::TimeZone;
use kruise_api::advancedcronjob::{AdvancedCronJob, Child};
use kruise_plan_kit::{Explain, Memory, ResourceId};
use kruise_views::ScheduledJobView;

/// One snapshot of an AdvancedCronJob and its jobs.
pub struct Snapshot<'a> {
    /// The object.
    pub cron: &'a AdvancedCronJob,
    /// `apiVersion` for owner references: that of the version on the wire.
    pub api_version: &'a str,
    /// `apiVersion` on the wire of the jobs that its template is for; `None` if the cluster does not serve them.
    pub job_api_version: Option<&'a str>,
    /// Jobs of that kind that its uid controls, in any state and any order.
    pub jobs: &'a [Arc<ScheduledJobView>],
    /// The time zone of the process.
    pub local: &'a TimeZone,
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// The resource of the created jobs.
pub const fn resource(child: Child) -> ResourceId {
    match child {
        Child::Job => ResourceId::JOBS,
        Child::ImageListPullJob => kruise_api::imagelistpulljob::RESOURCE,
        Child::BroadcastJob => kruise_api::broadcastjob::RESOURCE,
    }
}
