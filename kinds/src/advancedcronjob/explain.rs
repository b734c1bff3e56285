//! Explains the plan of an AdvancedCronJob: which activation is due, what it waits for, and when the next one is.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use jiff::tz::TimeZone;
use kruise_api::advancedcronjob::{AdvancedCronJob, AdvancedCronJobSpec, KIND};
use kruise_frame::explain::{Request, workload::Cluster};
use kruise_plan_kit::{Explain, Memory, Why};
use kruise_plan_workloads::advancedcronjob::resource;
use kruise_views::ScheduledJobView;

use crate::advancedcronjob::Inputs;

/// Explains a schedule.
pub fn explain<'r>(request: &'r Request<'r>) -> BoxFuture<'r, anyhow::Result<String>> {
    of_cluster(request).boxed()
}

async fn of_cluster(request: &Request<'_>) -> anyhow::Result<String> {
    let (cluster, cron) = Cluster::read::<AdvancedCronJob>(request, &KIND).await?;
    let child = cron.spec.template.child().map(|(child, _)| resource(child));
    let served = child.filter(|resource| cluster.served.version(*resource).is_some());
    let jobs: Vec<Arc<ScheduledJobView>> = match served {
        Some(resource) => cluster.list(resource).await?,
        None => Vec::new(),
    };
    let inputs = Inputs::new(&cron, &cluster.served, jobs);
    let api_version = cluster
        .served
        .api_version(kruise_api::advancedcronjob::RESOURCE)?;
    let zoned = (api_version.as_str(), &TimeZone::UTC);
    let (memory, now) = (Memory::default(), request.client.now());
    let mut plan = inputs.plan(&cron, zoned, &memory, Explain::Yes, now);
    if follows_the_manager(&cron.spec) {
        let text =
            "the schedule names no time zone and follows that of the manager, which is taken to be UTC here";
        plan.why.push(Why::of_set(text));
    }
    let pods = cluster.pods().await?;
    cluster.explain(&KIND, (pods, &[]), None, plan).await
}

/// Is the schedule read in the time zone of the manager?
fn follows_the_manager(spec: &AdvancedCronJobSpec) -> bool {
    let is_zoned =
        spec.schedule.contains("TZ") || spec.time_zone.as_deref().is_some_and(|zone| !zone.is_empty());
    !is_zoned && !spec.schedule.trim_start().starts_with("@every")
}
