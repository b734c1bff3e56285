//! Keys of EphemeralJobs and of the containers that they add. Wire format.

/// Finalizer of an EphemeralJob: its containers may still run.
pub const CLEANUP: &str = "apps.kruise.io/ephemeralcontainers-cleanup";
/// Environment variable of an ephemeral container: uid of its job.
pub const ID: &str = "KRUISE_EJOB_ID";
