//! *"An end is final, and comes when each pod has its result. Status reports what was."*

use kruise_sim::Method;

use super::known::has_ended;
use crate::engine::oracles::{Mirror, Object, PODS, Violation, Write};
use crate::subjects::ephemeraljob::start::JOBS;

/// Judges status writes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != JOBS.plural || write.subresource != "status" || write.method != Method::Patch {
        return None;
    }
    let versions = mirror.of(JOBS).changed_at(write.marks.of(JOBS))?;
    let version = mirror.of(JOBS).changes.get(write.marks.of(JOBS))?.version;
    let place = versions.iter().position(|job| job.version == version)?;
    let new = versions.get(place)?;
    let before = place.checked_sub(1).and_then(|place| versions.get(place));
    let violation = |oracle, what: String| {
        let what = format!("{} reported {what}", write.process);
        Some(Violation { oracle, what })
    };
    let end = |job: &Object| {
        let status = &job.value()["status"];
        (status["phase"].clone(), status["completionTime"].clone())
    };
    if before.is_some_and(|before| has_ended(before) && end(before) != end(new)) {
        return violation("an end is final", format!("{:?}", end(new)));
    }
    let count = |name: &str| new.value()["status"][name].as_i64().unwrap_or(0);
    let (matches, done) = (count("match"), count("succeeded") + count("failed"));
    let open = count("running") + count("waiting");
    let ever = mirror.of(PODS).objects.len() as i64;
    if matches > ever || done + open > matches {
        let what = format!("{done} and {open} of {matches} pods, and there were {ever}");
        return violation("status reports what was", what);
    }
    if matches > 0 && done == matches && !has_ended(new) {
        return violation(
            "a job whose pods have their results ends",
            format!("{:?}", end(new)),
        );
    }
    let phase = new.value()["status"]["phase"].as_str();
    if phase == Some("Succeeded") && count("failed") > 0 {
        return violation("a job with a failed pod has failed", format!("{:?}", end(new)));
    }
    None
}
