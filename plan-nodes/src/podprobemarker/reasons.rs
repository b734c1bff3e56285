//! Reasons of events of a PodProbeMarker, beside those that kinds share.

kruise_api::reasons! {
    PROBE_PORT_UNKNOWN = "ProbePortUnknown", Warning, "A probe names a port that its container does not have; these pods are not probed with it.";
}
