//! *"An end is final, and comes when each pod has its result. Status reports what was."*

use super::super::start::JOBS;
use super::known::has_ended;
use crate::rules::prelude::*;

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != JOBS.plural || write.subresource != "status" || write.method != Method::Patch {
        return None;
    }
    let change = write.change(mirror, JOBS)?;
    let (before, new) = (change.before(), change.after);
    let end = |job: &Object| {
        let status = &job.value()["status"];
        (status["phase"].clone(), status["completionTime"].clone())
    };
    never!(write, "an end is final",
        before.is_some_and(|before| has_ended(before) && end(before) != end(new)) => "{:?}", end(new));
    let count = |name: &str| number(&new.value()["status"][name]);
    let (matches, done) = (count("match"), count("succeeded") + count("failed"));
    let open = count("running") + count("waiting");
    let ever = mirror.of(PODS).objects.len() as i64;
    never!(write, "status reports what was",
        matches > ever || done + open > matches => "{done} and {open} of {matches} pods, and there were {ever}");
    never!(write, "a job whose pods have their results ends",
        matches > 0 && done == matches && !has_ended(new) => "{:?}", end(new));
    let phase = new.value()["status"]["phase"].as_str();
    never!(write, "a job with a failed pod has failed",
        phase == Some("Succeeded") && count("failed") > 0 => "{:?}", end(new));
    None
}
