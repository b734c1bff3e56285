//! Keys of PodProbeMarkers and of the pods that they probe. Wire format.

/// PodProbeMarker finalizer: its probes may be in NodePodProbes.
pub const CLEANUP: &str = "kruise.io/node-pod-probe-cleanup";
/// Pod annotation, for virtual nodes: the probes of its markers, JSON.
pub const POD_PROBES: &str = "kruise.io/podprobe";
/// Pod annotation beside [`POD_PROBES`]: names of the markers, joined by commas.
pub const POD_MARKERS: &str = "kruise.io/podprobemarker-list";
