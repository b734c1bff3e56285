//! Why a job runs, waits or stays.

use jiff::Timestamp;
use kruise_plan_kit::{Explain, Plan, Why, lifecycle::go_time};
use kruise_views::JobEnd;

use super::{runs::Runs, snapshot::Snapshot};

/// The jobs that there are.
pub(super) fn runs(snapshot: &Snapshot<'_>, runs: &Runs<'_>, plan: &mut Plan) {
    if snapshot.explain == Explain::No {
        return;
    }
    let last = match runs.last() {
        Some(last) => format!("the last activation that had a job is {}", go_time(last)),
        None => "no activation had a job yet".to_owned(),
    };
    plan.why.push(Why::of_set(last));
    for job in runs.active() {
        let text = if job.deleting {
            "is being deleted"
        } else {
            "has not ended"
        };
        plan.why.push(Why::new(&*job.name, text));
    }
    for (end, how) in [(JobEnd::Complete, "ended well"), (JobEnd::Failed, "failed")] {
        let ended = runs.ended(end).into_iter();
        plan.why.extend(ended.map(|job| Why::new(&*job.name, how)));
    }
}

pub(super) fn next(next: Option<Timestamp>, plan: &mut Plan) {
    plan.why.push(Why::of_set(match next {
        Some(next) => format!("the next activation is {}", go_time(next)),
        None => "there is no activation within five years".to_owned(),
    }));
}

pub(super) fn missed(activation: Timestamp, plan: &mut Plan) {
    let activation = go_time(activation);
    plan.why.push(Why::of_set(format!(
        "the activation {activation} gets no job: it is later than startingDeadlineSeconds allows"
    )));
}

pub(super) fn waits(activation: Timestamp, active: &str, plan: &mut Plan) {
    let activation = go_time(activation);
    plan.why.push(Why::of_set(format!(
        "the activation {activation} waits: {active} has not ended, and concurrencyPolicy is Forbid"
    )));
}

pub(super) fn unwritten(activation: Timestamp, plan: &mut Plan) {
    let activation = go_time(activation);
    plan.why.push(Why::of_set(format!(
        "the activation {activation} waits until the status is written"
    )));
}
