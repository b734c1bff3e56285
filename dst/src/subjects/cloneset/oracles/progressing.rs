//! *"A rollout that makes no progress for `progressDeadlineSeconds` is late, and no other."* The clock starts anew
//! with a new update revision, and whenever more updated pods are ready.

use super::super::draft::CLONESETS;
use super::spec::Spec;
use crate::rules::prelude::*;

const LATE: &str = "ProgressDeadlineExceeded";

/// Judges statuses that call a rollout late.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let set = mirror
        .only(CLONESETS)
        .filter(|_| write.resource == "clonesets" && write.subresource == "status")?;
    let versions = mirror.versions(CLONESETS, &set.uid);
    let [.., before, after] = versions else {
        return None;
    };
    let is_late = |set: &Object| {
        set.condition("Progressing")
            .is_some_and(|one| one["reason"] == LATE)
    };
    if is_late(before) || !is_late(after) {
        return None;
    }
    let deadlines = versions
        .iter()
        .filter_map(|one| one.spec()["progressDeadlineSeconds"].as_i64());
    let deadline = deadlines.min()?;
    let progress = |set: &Object| {
        (
            set.status()["updateRevision"].clone(),
            set.status()["updatedReadyReplicas"].as_i64(),
        )
    };
    let is_step = |one: &Object, next: &Object| {
        let (one, next) = (progress(one), progress(next));
        one.0 != next.0 || one.1 < next.1
    };
    let mut steps = versions.iter().zip(versions.iter().skip(1));
    let (one, next) = steps.rfind(|(one, next)| is_step(one, next))?;
    let last = noticed(one, next);
    let passed = write.now.as_second() - last.as_second();
    // A status may report the progress and its end at once; times are in seconds.
    never!(write, "late when the deadline is over",
        last != after.at && passed + 1 < deadline => "{passed} s after progress");
    None
}

/// When the progress was noticed that the second status reports: not before the first, however long the write took.
fn noticed(one: &Object, next: &Object) -> Timestamp {
    let condition = next.condition("Progressing");
    let reported = condition.and_then(|condition| time(&condition["lastUpdateTime"]));
    let reported = reported.filter(|at: &Timestamp| one.at <= *at && *at <= next.at);
    reported.unwrap_or(next.at)
}

/// What is wrong with the condition once all is over.
pub fn unfinished(set: &Object, spec: &Spec) -> Result<(), String> {
    let status = set.status();
    let found = set
        .condition("Progressing")
        .map(|one| (text(&one["status"]), text(&one["reason"])));
    let is_new = status["currentRevision"] == status["updateRevision"];
    let is_complete = is_new && number(&status["updatedReplicas"]) == spec.replicas;
    let has_deadline = set.spec()["progressDeadlineSeconds"].is_i64();
    let reason = if is_complete {
        "CloneSetAvailable"
    } else {
        "ProgressPartitionAvailable"
    };
    expect(
        "condition Progressing",
        found,
        has_deadline.then_some(("True", reason)),
    )
}
