//! The words of events.

use super::reasons;
use kruise_plan_kit::{
    EventNote, FailureNote,
    events::{INVALID_SPEC, WORKLOAD_UNREADABLE},
    workloads::Workload,
};

pub(super) fn not_created(pod: &str, subset: &str) -> EventNote {
    let message = format!("pod {pod} of subset {subset} was not created within 30 seconds");
    EventNote::new(&reasons::CREATE_POD_FAILED, message)
}

pub(super) fn not_deleted(pod: &str, subset: &str) -> EventNote {
    let message = format!("pod {pod} of subset {subset} was not deleted within 15 seconds");
    EventNote::new(&reasons::DELETE_POD_FAILED, message)
}

pub(super) fn cannot_delete(pod: &str) -> FailureNote {
    FailureNote::new(&reasons::DELETE_POD_FAILED, format!("cannot delete pod {pod}: "))
}

pub(super) fn recovered(subset: &str) -> EventNote {
    let message = format!("subset {subset} is tried again");
    EventNote::new(&reasons::RECOVER_SCHEDULABLE, message)
}

pub(super) fn unresolved(error: &str) -> EventNote {
    EventNote::new(&INVALID_SPEC, format!("pods are not counted: {error}"))
}

pub(super) fn unreadable(target: &Workload) -> EventNote {
    let Workload { kind, name, .. } = target;
    let message = format!("{kind} {name} cannot be read, and its pods are not counted");
    EventNote::new(&WORKLOAD_UNREADABLE, message)
}
