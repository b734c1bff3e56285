//! Keys of pods whose liveness probes the node agent runs instead of the kubelet. Wire format.

/// Pod annotation, `true`: liveness probes are moved from its containers to [`LIVENESS_CONTEXT`].
pub const ENHANCED_LIVENESS: &str = "apps.kruise.io/using-enhanced-liveness";
/// Pod annotation: the liveness probes of its containers, JSON.
pub const LIVENESS_CONTEXT: &str = "apps.kruise.io/container-probe-context";
