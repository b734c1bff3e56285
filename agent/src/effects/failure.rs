//! Why a runtime does not answer.

use kruise_agent_core::Failure;

/// Why nothing can be asked of a runtime that was not detected.
pub(super) const NO_RUNTIME: &str = "it was not found";

/// An error of a runtime, as the agent knows it.
pub(super) fn failure(error: &cri::Error) -> Failure {
    match error {
        cri::Error::Unavailable(problem) => Failure::Unavailable(problem.as_str().into()),
        other => Failure::Failed(other.to_string().into()),
    }
}
