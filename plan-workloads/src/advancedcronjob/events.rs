//! What is reported, in which words.

use super::reasons;
use jiff::Timestamp;
use kruise_plan_kit::{
    EventNote,
    events::{INVALID_SPEC, SUCCESSFUL_CREATE, SUCCESSFUL_DELETE},
    lifecycle::go_time,
};
use kruise_views::JobEnd;

pub(super) fn created(job: &str) -> EventNote {
    EventNote::new(&SUCCESSFUL_CREATE, format!("Created job {job}"))
}

pub(super) fn deleted(job: &str) -> EventNote {
    EventNote::new(&SUCCESSFUL_DELETE, format!("Deleted job {job}"))
}

pub(super) fn ended(job: &str, end: JobEnd) -> EventNote {
    let condition = match end {
        JobEnd::Complete => "Complete",
        JobEnd::Failed => "Failed",
    };
    let message = format!("Saw completed job: {job}, condition: {condition}");
    EventNote::new(&reasons::SAW_COMPLETED_JOB, message)
}

pub(super) fn missing(job: &str) -> EventNote {
    EventNote::new(&reasons::MISSING_JOB, format!("Active job went missing: {job}"))
}

pub(super) fn invalid(problem: &str) -> EventNote {
    EventNote::new(&INVALID_SPEC, format!("no job is created: {problem}"))
}

pub(super) fn unknown_zone(zone: &str) -> EventNote {
    let message = format!("time zone {zone:?} is not known; the schedule follows the zone of the manager");
    EventNote::new(&reasons::UNKNOWN_TIME_ZONE, message)
}

pub(super) fn missed(activation: Timestamp) -> EventNote {
    let message = format!("Missed scheduled time to start a job: {}", go_time(activation));
    EventNote::new(&reasons::MISS_SCHEDULE, message)
}

pub(super) fn many_missed(activation: Timestamp) -> EventNote {
    let message = format!(
        "more than 100 activations had no job; one is created for the latest, {}",
        go_time(activation)
    );
    EventNote::new(&reasons::TOO_MANY_MISSED, message)
}

pub(super) fn already_active(job: &str) -> EventNote {
    let message = format!("Not starting job because {job} is running and concurrency policy is Forbid");
    EventNote::new(&reasons::JOB_ALREADY_ACTIVE, message)
}
