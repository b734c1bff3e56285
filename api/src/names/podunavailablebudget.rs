//! Keys of PodUnavailableBudgets and of the pods that they protect. Wire format.

/// PodUnavailableBudget annotation form of `protectOperations` in `v1alpha1`: a comma-separated list.
pub const PROTECT_OPERATIONS: &str = "kruise.io/pub-protect-operations";
/// PodUnavailableBudget annotation form of `protectTotalReplicas` in `v1alpha1`: a number.
pub const PROTECT_TOTAL_REPLICAS: &str = "pub.kruise.io/protect-total-replicas";
/// Pod annotation: name of the budget that protects it.
pub const RELATED: &str = "pub.kruise.io/related-pub";
/// Older key of [`RELATED`]: both are written.
pub const RELATED_LEGACY: &str = "kruise.io/related-pub";
/// Pod annotation, `true`: no budget protects the pod.
pub const NO_PROTECT: &str = "pub.kruise.io/no-protect";
/// Prefix of pod labels: a pod with any of them counts as unavailable.
pub const UNAVAILABLE_PREFIX: &str = "unavailable-pod.kruise.io/";
