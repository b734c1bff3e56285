//! The input of a plan of an AdvancedCronJob: its jobs, read from the caches or given.

use std::sync::Arc;

use jiff::{Timestamp, tz::TimeZone};
use kruise_api::advancedcronjob::AdvancedCronJob;
use kruise_plan_kit::{Explain, Memory, Plan};
use kruise_plan_workloads::advancedcronjob::{Snapshot, plan, resource};
use kruise_runtime::Served;
use kruise_views::ScheduledJobView;

/// The objects of one AdvancedCronJob, and what the cluster serves.
pub struct Inputs {
    pub(super) jobs: Vec<Arc<ScheduledJobView>>,
    pub(super) job_api_version: Option<String>,
}

impl Inputs {
    /// From jobs of the kind that its template is for. It keeps those in its namespace that its uid controls.
    pub fn new(cron: &AdvancedCronJob, served: &Served, mut jobs: Vec<Arc<ScheduledJobView>>) -> Self {
        let metadata = &cron.metadata;
        jobs.retain(|job| {
            let controller = job.controller.as_ref();
            *job.namespace == *metadata.namespace
                && controller.is_some_and(|owner| *owner.uid == *metadata.uid)
        });
        let child = cron.spec.template.child();
        Self {
            jobs,
            job_api_version: child.and_then(|(child, _)| served.api_version(resource(child)).ok()),
        }
    }

    /// Plans the AdvancedCronJob.
    pub fn plan(
        &self,
        cron: &AdvancedCronJob,
        (api_version, local): (&str, &TimeZone),
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            cron,
            api_version,
            job_api_version: self.job_api_version.as_deref(),
            jobs: &self.jobs,
            local,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}
