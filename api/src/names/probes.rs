//! Keys of PodProbeMarkers and of pods whose probes are not the kubelet's. Wire format.

/// PodProbeMarker finalizer: its probes may be in NodePodProbes.
pub const MARKER_CLEANUP: &str = "kruise.io/node-pod-probe-cleanup";
/// Pod annotation, for nodes that are no machines: the probes of its markers, JSON.
pub const POD_PROBES: &str = "kruise.io/podprobe";
/// Pod annotation beside [`POD_PROBES`]: names of the markers, joined by commas.
pub const POD_MARKERS: &str = "kruise.io/podprobemarker-list";
/// Pod annotation, `true`: liveness probes are taken from its containers and kept in [`LIVENESS_CONTEXT`].
pub const ENHANCED_LIVENESS: &str = "apps.kruise.io/using-enhanced-liveness";
/// Pod annotation: the liveness probes of its containers, JSON.
pub const LIVENESS_CONTEXT: &str = "apps.kruise.io/container-probe-context";
