//! Reasons of events of a PersistentPodState, beside those that kinds share.

kruise_api::reasons! {
    GENERATED_POD_STATE = "GeneratedPersistentPodState", Normal, ["StatefulSet"], "A PersistentPodState was created, changed or deleted as the annotations of the workload say. The workload may be of any kind that administrators list.";
    POD_STATE_NOT_GENERATED = "PersistentPodStateNotGenerated", Warning, ["StatefulSet"], "The annotations of the workload ask for a PersistentPodState, but one of that name, or one for that workload, is somebody else's and stays as it is; or it could not be written.";
    TOPOLOGY_GONE = "RequiredTopologyGone", Warning, "Pods wait for a node that no longer exists: no node has the labels that are recorded for them and required.";
}
