//! What a request says of itself.

use crate::rules::prelude::*;

/// Label of a request: the uid of its pod.
pub const POD_UID: &str = "crr.apps.kruise.io/pod-uid";

/// Has the request ended, by its phase or by its time?
pub fn is_over(request: &Object) -> bool {
    let status = &request.value()["status"];
    !status["completionTime"].is_null() || status["phase"] == "Completed"
}

/// Is an agent still to deal with the request?
pub fn is_open(request: &Object) -> bool {
    !request.is_going() && !is_over(request)
}
