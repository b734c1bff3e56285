//! Keys of EphemeralJobs and of the containers that they add. Wire format.

/// Finalizer of an EphemeralJob: its containers are still to be told of.
pub const CLEANUP: &str = "apps.kruise.io/ephemeralcontainers-cleanup";
/// Environment variable of an ephemeral container: uid of the job that it is of.
pub const ID: &str = "KRUISE_EJOB_ID";
