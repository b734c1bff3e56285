//! Reasons of events of a UnitedDeployment, beside those that kinds share.

kruise_api::reasons! {
    UPDATED_SUBSET = "SuccessfulUpdateSubset", Normal, "Workloads of subsets were created, or those of subsets that left the topology or of another kind deleted.";
    FAILED_UPDATE_SUBSET = "FailedUpdateSubset", Warning, "The workload of a subset could not be created, adopted, updated or deleted; the message ends with the error of the API server.";
    FAILED_REVISION = "FailedRevisionProvision", Warning, "The revision of the template could not be stored; the message is the error of the API server.";
    FAILED_DUPLICATE = "FailedDeleteDuplicatedSubsets", Warning, "A second workload of a subset could not be deleted; the message is the error of the API server.";
    FAILED_REPLICAS = "Failed SpecifySubsetReplicas", Warning, "The replicas of subsets contradict the replicas of the whole; the workloads stay as they are.";
}
