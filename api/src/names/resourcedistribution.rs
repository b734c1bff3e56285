//! Keys of the copies that ResourceDistributions create. Wire format.

/// Annotation of a copy: SHA-256 of `spec.resource` of its ResourceDistribution.
pub const COPY_HASH: &str = "kruise.io/resourcedistribution.resource.hashcode";
/// Annotation of a copy: name of its ResourceDistribution.
pub const COPY_FROM: &str = "kruise.io/resourcedistribution.resource.from";
