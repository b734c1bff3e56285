//! Keys of PersistentPodStates, of the workloads that they are for and of their pods. Wire format.

/// Pod annotation: name of the PersistentPodState that said where the pod belongs.
pub const INJECTED: &str = "kruise.io/injected-persistent-pod-state";
/// Workload annotation, `true`: it gets a PersistentPodState, made of the three annotations below.
pub const GENERATED: &str = "kruise.io/auto-generate-persistent-pod-state";
/// Workload annotation: labels of nodes in which a pod's old and new node must agree, joined by commas.
pub const REQUIRED: &str = "kruise.io/required-persistent-topology";
/// Workload annotation: labels of nodes in which they had better agree.
pub const PREFERRED: &str = "kruise.io/preferred-persistent-topology";
/// Workload annotation: annotations of pods that are remembered.
pub const ANNOTATIONS: &str = "kruise.io/persistent-pod-annotations";
/// Key of the configuration: kinds of workload that PersistentPodStates may be for.
pub const WORKLOADS: &str = "PPS_Watch_Custom_Workload_WhiteList";
