//! Reasons of events of containers that start in order, beside those that kinds share.

kruise_api::reasons! {
    FAILED_LAUNCH = "FailedLaunch", Warning, ["Pod"], "Containers wait to start, because the barrier ConfigMap cannot be written or belongs to another owner.";
}
