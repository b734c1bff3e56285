//! Reasons of events of a ResourceDistribution, beside those that kinds share.

kruise_api::reasons! {
    DISTRIBUTED = "Distributed", Normal, "Every target namespace has its copy.";
    COPY_CONFLICT = "ConflictOccurred", Warning, "Namespaces have an object with the name of the copy that the ResourceDistribution does not control; they are left as they are.";
    FAILED_COPY = "FailedDistribute", Warning, "A copy could not be created, updated or deleted; the message is the error of the API server.";
    SYSTEM_COPY_REMOVED = "SystemNamespaceCopyRemoved", Warning, "A copy was deleted in kube-system or kube-public, which OpenKruise up to version 1.9 distributed to.";
}
