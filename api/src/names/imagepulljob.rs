//! Keys of ImagePullJobs and of the copies of their pull secrets. Wire format.

/// ImagePullJob finalizer: pull secrets may have been copied for it.
pub const PULL_JOB_PROTECTION: &str = "apps.kruise.io/deletion-protection";
/// Types of secrets that hold credentials of images. The API server checks what such secrets hold.
pub const CREDENTIAL_TYPES: [&str; 2] = ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"];
/// Annotation of a copied pull secret: the original, `namespace/name`.
pub const SECRET_SOURCE: &str = "imagepulljobs.kruise.io/source-key";
/// Annotation of a copied pull secret: the jobs that need it, sorted, joined by commas.
pub const SECRET_REFERENCES: &str = "imagepulljobs.kruise.io/references";
/// Annotation of a copied pull secret: `batch`, one copy for all jobs.
pub const SECRET_MODE: &str = "imagepulljobs.kruise.io/mode";
