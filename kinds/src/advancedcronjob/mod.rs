//! AdvancedCronJob: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`]. A schedule is looked at when it or one of its jobs changes, at its next
//! activation, and once a minute, because a timer does not notice that the clock was set.

mod cached;
mod explain;
mod inputs;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::tz::TimeZone;
use kruise_api::advancedcronjob::{AdvancedCronJob, Child, KIND};
use kruise_api::definition::Kind;
use kruise_frame::{
    caches::owners,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Plan, ResourceId, events};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::ScheduledJobView;
use kube_cache::SharedInformer;

pub use inputs::Inputs;

use cached::{BROADCASTS, CRON_JOBS, JOBS, JOBS_BY_OWNER, PULLS, cache};
use kruise_runtime::parsed::Parsed;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<CronJobs>("advancedcronjob-controller", 3)
    .reconciles(
        &KIND,
        "advancedcronjob-workers",
        "AdvancedCronJobs handled side by side",
    )
    .reviewed(&kruise_admission::kinds::advancedcronjob::WEBHOOKS)
    .emits(&[
        kruise_plan_workloads::advancedcronjob::reasons::ALL,
        events::OF_CHILDREN,
    ])
    .granted(&[
        super::TEMPLATES,
        Grant::on(ResourceId::JOBS, &["create", "delete"]),
        Grant::on(kruise_api::broadcastjob::RESOURCE, &["create", "delete"]),
        Grant::on(kruise_api::imagelistpulljob::RESOURCE, &["create", "delete"]),
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

const OVERDUE: Spec = Spec::overdue_writes("advancedcronjob_expectation_leakage");

/// Reconciles one AdvancedCronJob from the caches.
pub struct CronJobs {
    schedules: SharedInformer<Parsed<AdvancedCronJob>>,
    jobs: SharedInformer<ScheduledJobView>,
    pulls: SharedInformer<ScheduledJobView>,
    broadcasts: SharedInformer<ScheduledJobView>,
    served: Arc<Served>,
    local: TimeZone,
}

impl Controls for CronJobs {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            schedules: setup.cache(&CRON_JOBS),
            jobs: setup.cache(&JOBS),
            pulls: setup.cache(&PULLS),
            broadcasts: setup.cache(&BROADCASTS),
            served: setup.parts.served.clone(),
            local: setup.parts.config.time_zone.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&CRON_JOBS);
        for child in [Child::Job, Child::ImageListPullJob, Child::BroadcastJob] {
            wiring.maps(cache(child), |_, delta| owners(&KIND, delta));
        }
    }
}

impl CronJobs {
    /// Reads the cache of the jobs that the template is for.
    fn read_inputs(&self, cron: &AdvancedCronJob) -> Inputs {
        let jobs = cron.spec.template.child().map(|(child, _)| match child {
            Child::Job => &self.jobs,
            Child::ImageListPullJob => &self.pulls,
            Child::BroadcastJob => &self.broadcasts,
        });
        let jobs = jobs.map(|jobs| jobs.snapshot().by_index(&JOBS_BY_OWNER, &cron.metadata.uid));
        Inputs::new(cron, &self.served, jobs.unwrap_or_default())
    }
}

impl KindReconciler for CronJobs {
    type Object = AdvancedCronJob;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<AdvancedCronJob>> {
        &self.schedules
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, cron: &Self::Object, round: Round<'_>) -> Option<Plan> {
        let zoned = (round.api_version, &self.local);
        Some(
            self.read_inputs(cron)
                .plan(cron, zoned, round.memory, Explain::No, round.now),
        )
    }
}
