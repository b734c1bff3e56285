//! Keys of DaemonSets and of their pods. Wire format.

/// DaemonSet annotation form of `scaleStrategy.partitionedScaling`: `"true"`.
pub const PROGRESSIVE_CREATE_POD: &str = "daemonset.kruise.io/progressive-create-pod";
/// DaemonSet annotation: the template generation, which is copied to its pods.
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// Label of a DaemonSet's pod: the template generation, see [`TEMPLATE_GENERATION`].
pub const POD_TEMPLATE_GENERATION: &str = "pod-template-generation";
/// `schedulerName` of pods that are bound to their node when they are created.
pub const SCHEDULER: &str = "kubernetes.io/daemonset-controller";
