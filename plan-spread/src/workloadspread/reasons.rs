//! Reasons of events of a WorkloadSpread, beside those that kinds share.

kruise_api::reasons! {
    CREATE_POD_FAILED = "CreatePodFailed", Warning, "A pod that the webhook put into a subset was not created within 30 seconds; its place is free again.";
    DELETE_POD_FAILED = "DeletePodFailed", Warning, "A pod of a subset whose deletion was allowed was not deleted within 15 seconds, or one that no node can take could not be deleted.";
    PATCH_COST_FAILED = "PatchPodDeletionCostFailed", Warning, "The deletion cost of a pod could not be written; the message ends with the error of the API server.";
    RECOVER_SCHEDULABLE = "RecoverSchedulable", Normal, "A subset that could not take pods five minutes ago is tried again.";
}
