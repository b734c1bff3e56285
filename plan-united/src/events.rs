//! What a UnitedDeployment reports as events.

use crate::reasons;
use kruise_api::uniteddeployment::Child;
use kruise_plan_kit::{EventNote, FailureNote, events};

/// Workloads were created.
pub(crate) fn created(count: usize, child: Child) -> EventNote {
    subsets("Create", count, child)
}

/// Workloads were deleted.
pub(crate) fn deleted(count: usize, child: Child) -> EventNote {
    subsets("Delete", count, child)
}

fn subsets(verb: &str, count: usize, child: Child) -> EventNote {
    EventNote::new(
        &reasons::UPDATED_SUBSET,
        format!("{verb} {count} Subset ({})", child.name()),
    )
}

/// A write of a workload failed.
pub(crate) fn failed(verb: &str, child: Child, name: &str) -> FailureNote {
    let prefix = format!("Error updating PodSet ({}) {name} when {verb}: ", child.name());
    FailureNote::new(&reasons::FAILED_UPDATE_SUBSET, prefix)
}

/// A second workload of a subset could not be deleted.
pub(crate) fn not_deleted() -> FailureNote {
    FailureNote::new(&reasons::FAILED_DUPLICATE, String::new())
}

/// A revision could not be written.
pub(crate) fn no_revision() -> FailureNote {
    FailureNote::new(&reasons::FAILED_REVISION, String::new())
}

/// The workload of a subset cannot be made.
pub(crate) fn problem(problem: &str) -> EventNote {
    EventNote::new(&reasons::FAILED_UPDATE_SUBSET, problem)
}

/// The replicas of subsets contradict those of the whole.
pub(crate) fn contradiction(problem: &str) -> EventNote {
    let message = format!("Specified subset replicas is ineffective: {problem}");
    EventNote::new(&reasons::FAILED_REPLICAS, message)
}

/// There is no template.
pub(crate) fn invalid(problem: &str) -> EventNote {
    EventNote::new(
        &events::INVALID_SPEC,
        format!("the specification cannot be read: {problem}"),
    )
}
