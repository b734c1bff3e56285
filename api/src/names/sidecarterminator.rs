//! Sidecars that end when their job ends: environment variables, requests and messages. Wire format.

/// Environment variable of a container, `true`: the container is terminated when all containers without the
/// variable have ended.
pub const TERMINATE_SIDECAR: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
/// As [`TERMINATE_SIDECAR`], for virtual nodes: the image, of a program that ends at once, that replaces the image
/// of the container.
pub const TERMINATE_SIDECAR_WITH_IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
/// Environment variable beside [`TERMINATE_SIDECAR`], `true`: its exit code does not affect the phase of the pod.
pub const SIDECAR_IGNORE_EXIT_CODE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";

/// The beginning of the names of the ContainerRecreateRequests that stop sidecars; the uid of their pod follows.
pub const REQUEST_PREFIX: &str = "sidecar-termination-";
/// What follows the uid in the name of the request for sidecars whose exit codes do not count, if the pod has
/// others, too.
pub const REQUEST_IGNORED: &str = "-ignore-exit-code";
/// Message of the pod condition [`SIDECAR_TERMINATED`](super::conditions::SIDECAR_TERMINATED).
pub const TERMINATED_MESSAGE: &str = "Terminated by Sidecar Terminator";
