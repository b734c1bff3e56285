//! Reasons of events of a CloneSet, beside those that kinds share.

kruise_api::reasons! {
    SUCCESSFUL_RECREATE = "SuccessfulUpdatePodReCreate", Normal, "An update deleted a pod to recreate it or, if a preDelete hook holds the pod, labelled it for deletion.";
    FAILED_RECREATE = "FailedUpdatePodReCreate", Warning, "A pod that an update recreates could not be deleted.";
    SCALE_UP_LIMITED = "ScaleUpLimited", Warning, "scaleStrategy.maxUnavailable allows fewer new pods than are missing.";
}
