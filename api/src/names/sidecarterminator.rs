//! Environment variables of sidecars that end when their job ends. Wire format.

/// Environment variable of a container, `true`: it is ended once all containers without it have ended.
pub const TERMINATE_SIDECAR: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
/// As [`TERMINATE_SIDECAR`], for nodes that are no machines: the image, one that ends at once, that takes its place.
pub const TERMINATE_SIDECAR_WITH_IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
/// Environment variable beside [`TERMINATE_SIDECAR`], `true`: how it ends says nothing of the pod.
pub const SIDECAR_IGNORE_EXIT_CODE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";
