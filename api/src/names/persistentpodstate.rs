//! Keys of PersistentPodStates, of the workloads that they are for and of their pods. Wire format.

/// Pod annotation: name of the PersistentPodState that added its node affinity.
pub const INJECTED: &str = "kruise.io/injected-persistent-pod-state";
/// Workload annotation, `true`: a PersistentPodState is created from the three annotations below.
pub const GENERATED: &str = "kruise.io/auto-generate-persistent-pod-state";
/// Workload annotation: node labels whose values must be equal on the old and the new node of a pod, joined by commas.
pub const REQUIRED: &str = "kruise.io/required-persistent-topology";
/// Workload annotation: node labels whose values should be equal.
pub const PREFERRED: &str = "kruise.io/preferred-persistent-topology";
/// Workload annotation: pod annotations that are recorded.
pub const ANNOTATIONS: &str = "kruise.io/persistent-pod-annotations";
/// The annotations of workloads.
pub const WORKLOAD_ANNOTATIONS: [&str; 4] = [GENERATED, REQUIRED, PREFERRED, ANNOTATIONS];
/// Key of the configuration: kinds of workload that PersistentPodStates may be for.
pub const WORKLOADS: &str = "PPS_Watch_Custom_Workload_WhiteList";
