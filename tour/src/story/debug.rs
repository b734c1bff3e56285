//! A container for debugging in pods of the CloneSet.

use serde_json::{Value, json};

use super::guard::none_was_touched;
use super::step::{Claim, Costs, Outcome, Step, claim};
use crate::act::Act;
use crate::subject::{DEBUG, WEB};

/// In so many pods.
const PODS: usize = 2;

/// What an EphemeralJob does.
pub(super) const STEPS: [Step; 1] = [Step {
    of: &WEB,
    title: "Debug two pods",
    text: "An EphemeralJob adds a container to pods that run, one after the other, and reports how it ends. Nothing restarts.",
    act: |_| Act::Add(&DEBUG),
    settled: |_, now| Ok(!status(&now.job, "completionTime").is_null()),
    question: None,
    claims: |outcome| {
        vec![
            the_job_reports(outcome),
            two_have_it(outcome),
            none_was_touched(outcome),
        ]
    },
    costs: Costs::Own,
}];

fn status(job: &Value, name: &str) -> Value {
    let found = job.get("status").and_then(|status| status.get(name));
    found.cloned().unwrap_or_default()
}

fn the_job_reports(outcome: &Outcome) -> Claim {
    let job = &outcome.after.job;
    let holds = status(job, "phase") == "Succeeded"
        && status(job, "match") == json!(PODS)
        && status(job, "succeeded") == json!(PODS);
    claim("the job reports that the container ended well in two pods", holds)
}

fn two_have_it(outcome: &Outcome) -> Claim {
    let with = &outcome.after.with_debugger;
    let names = with.join(" and ");
    claim(
        format!("{names} have the container, and no other pod has"),
        with.len() == PODS,
    )
}
