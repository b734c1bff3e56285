//! The words of events and conditions. Clients match on them.

use kruise_api::{ephemeraljob::EphemeralJob, meta::ObjectMeta};
use kruise_plan_kit::{EventNote, FailureNote, Step};
use kruise_views::EphemeralState;

use super::reasons;
use super::targets::{Counts, State, Target, Targets};

/// So many pods that failed are named in an event.
const NAMED: usize = 5;

/// Reports that a pod gets the containers.
pub(super) fn addition(mut step: Step, job: &EphemeralJob, pod: &str) -> Step {
    let names: Vec<&str> = job.spec.template.names().collect();
    let text = format!("Added ephemeral containers to pod {pod}: {}", names.join(", "));
    step.done = Some(EventNote::new(&reasons::ADDED_CONTAINERS, text));
    step.failed = Some(FailureNote::new(&reasons::CREATE_FAILED, String::new()));
    step
}

/// Message of the condition of a job that selects no pods.
pub(super) const NO_PODS: &str = "job match no pods";
/// Message of the condition of a job whose pods have all succeeded.
pub(super) const SUCCEEDED: &str = "job success to run all tasks";
/// Message of the condition of a job without containers.
pub(super) const NO_CONTAINERS: &str = "the template has no ephemeral containers";

/// Message of the condition of a job of which a pod failed.
pub(super) fn failed(job: &ObjectMeta) -> String {
    let (namespace, name) = (&job.namespace, &job.name);
    format!("EphemeralJob {namespace}/{name} failed to create ephemeral container")
}

/// Message of the condition and the event of a job at its deadline.
pub(super) fn late(job: &ObjectMeta) -> String {
    let (namespace, name) = (&job.namespace, &job.name);
    format!("EphemeralJob {namespace}/{name} was active longer than specified deadline")
}

/// The event of a job whose pods have all come to their end.
pub(super) fn done(targets: &Targets<'_>, counts: Counts) -> EventNote {
    let Counts {
        succeeded, failed, ..
    } = counts;
    if failed == 0 {
        let text = format!("the containers of {} ended well", some(succeeded));
        return EventNote::new(&reasons::EPHEMERAL_SUCCEEDED, text);
    }
    let bad = targets
        .all
        .iter()
        .filter(|target| target.state() == State::Failed);
    let named: Vec<String> = bad.clone().take(NAMED).map(describe).collect();
    let more = bad.count().saturating_sub(NAMED);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    let text = format!(
        "{} succeeded, {} failed: {}{more}",
        some(succeeded),
        failed,
        named.join("; ")
    );
    EventNote::new(&reasons::EPHEMERAL_FAILED, text)
}

/// A pod that failed, with each container that did.
fn describe(target: &Target<'_>) -> String {
    let failed = target.own.iter().filter_map(|one| match one.state {
        EphemeralState::Failed(Some(code)) => Some(format!("{} ended with exit code {code}", one.name)),
        EphemeralState::Failed(None) => Some(format!("{} cannot be run: {}", one.name, one.reason)),
        _ => None,
    });
    let failed: Vec<String> = failed.collect();
    format!("{} ({})", target.view.name, failed.join(", "))
}

/// So many pods.
fn some(pods: i32) -> String {
    let plural = if pods == 1 { "" } else { "s" };
    format!("{pods} pod{plural}")
}
