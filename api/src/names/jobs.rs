//! Keys of BroadcastJobs, AdvancedCronJobs and EphemeralJobs, and of what they make. Wire format.

/// Label of a BroadcastJob's pods: name of the job.
pub const BROADCAST_NAME: &str = "broadcastjob-name";
/// Label of a BroadcastJob's pods: uid of the job.
pub const BROADCAST_UID: &str = "broadcastjob-controller-uid";
/// Annotation of what an AdvancedCronJob makes: the time of the schedule that it is for, RFC 3339.
pub const SCHEDULED_AT: &str = "apps.kruise.io/scheduled-at";
/// Finalizer of an EphemeralJob: its containers are still to be told of.
pub const EPHEMERAL_CLEANUP: &str = "apps.kruise.io/ephemeralcontainers-cleanup";
/// Environment variable of an ephemeral container: uid of the job that it is of.
pub const EPHEMERAL_ID: &str = "KRUISE_EJOB_ID";

/// Environment variable of a container, `true`: it is ended once all containers without it have ended.
pub const TERMINATE_SIDECAR: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
/// As [`TERMINATE_SIDECAR`], for nodes that are no machines: the image, one that ends at once, that takes its place.
pub const TERMINATE_SIDECAR_WITH_IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
/// Environment variable beside [`TERMINATE_SIDECAR`], `true`: how it ends says nothing of the pod.
pub const SIDECAR_IGNORE_EXIT_CODE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";
