//! *"A rollout that makes no progress for `progressDeadlineSeconds` is late, and no other."* The clock starts anew with a
//! new update revision, and whenever more updated pods are ready.

use super::super::draft::CLONESETS;
use super::spec::Spec;
use crate::rules::prelude::*;

const LATE: &str = "ProgressDeadlineExceeded";

fn progressing(status: &Value) -> Option<&Value> {
    items(&status["conditions"]).find(|one| one["type"] == "Progressing")
}

/// Judges statuses that call a rollout late.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "clonesets" || write.subresource != "status" {
        return None;
    }
    let sets = mirror.of(CLONESETS);
    let set = sets.now().next()?;
    let versions = sets.objects.get(&set.uid)?;
    let [.., before, after] = versions.as_slice() else {
        return None;
    };
    let is_late = |set: &Object| progressing(&set.value()["status"]).is_some_and(|one| one["reason"] == LATE);
    if is_late(before) || !is_late(after) {
        return None;
    }
    let deadlines = versions
        .iter()
        .filter_map(|one| one.value()["spec"]["progressDeadlineSeconds"].as_i64());
    let deadline = deadlines.min()?;
    let progress = |status: &Value| {
        (
            status["updateRevision"].clone(),
            status["updatedReadyReplicas"].as_i64(),
        )
    };
    let steps = versions.iter().zip(versions.iter().skip(1));
    let last = steps
        .filter(|(one, next)| {
            let (one, next) = (
                progress(&one.value()["status"]),
                progress(&next.value()["status"]),
            );
            one.0 != next.0 || one.1 < next.1
        })
        .map(|(one, next)| noticed(one, next))
        .next_back()?;
    let passed = write.now.as_second() - last.as_second();
    // A status may report the progress and its end at once; times are in seconds.
    never!(write, "late when the deadline is over",
        last != after.at && passed + 1 < deadline => "{passed} s after progress");
    None
}

/// When the progress was noticed that the second status reports: not before the first, however long the write took.
fn noticed(one: &Object, next: &Object) -> Timestamp {
    let condition = progressing(&next.value()["status"]);
    let reported = condition.and_then(|condition| condition["lastUpdateTime"].as_str()?.parse().ok());
    let reported = reported.filter(|at: &Timestamp| one.at <= *at && *at <= next.at);
    reported.unwrap_or(next.at)
}

/// What is wrong with the condition once all is over.
pub fn unfinished(set: &Object, spec: &Spec) -> Result<(), String> {
    let status = &set.value()["status"];
    let found = progressing(status).map(|one| (one["status"].as_str(), one["reason"].as_str()));
    let count = |name: &str| number(&status[name]);
    let wanted = match set.value()["spec"]["progressDeadlineSeconds"].as_i64() {
        None => None,
        Some(_)
            if status["currentRevision"] == status["updateRevision"]
                && count("updatedReplicas") == spec.replicas =>
        {
            Some("CloneSetAvailable")
        }
        Some(_) => Some("ProgressPartitionAvailable"),
    };
    let wanted = wanted.map(|reason| (Some("True"), Some(reason)));
    if found == wanted {
        return Ok(());
    }
    Err(format!("condition Progressing: {found:?}, not {wanted:?}"))
}
