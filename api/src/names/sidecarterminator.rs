//! Environment variables of sidecars that end when their job ends. Wire format.

/// Environment variable of a container, `true`: the container is terminated when all containers without the variable have ended.
pub const TERMINATE_SIDECAR: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
/// As [`TERMINATE_SIDECAR`], for virtual nodes: the image, of a program that ends at once, that replaces the image of the
/// container.
pub const TERMINATE_SIDECAR_WITH_IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
/// Environment variable beside [`TERMINATE_SIDECAR`], `true`: its exit code does not affect the phase of the pod.
pub const SIDECAR_IGNORE_EXIT_CODE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";
