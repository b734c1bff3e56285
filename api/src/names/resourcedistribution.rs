//! Keys of the copies that ResourceDistributions create. Wire format.

/// Annotation of a copy: SHA-256 of `spec.resource` of its ResourceDistribution.
pub const COPY_HASH: &str = "kruise.io/resourcedistribution.resource.hashcode";
/// Annotation of a copy: name of its ResourceDistribution.
pub const COPY_FROM: &str = "kruise.io/resourcedistribution.resource.from";
/// Annotation of a ResourceDistribution: `"true"` lets it reach the namespaces in [`SYSTEM_NAMESPACES`], as
/// OpenKruise did up to version 1.9.
pub const REACHES_SYSTEM_NAMESPACES: &str = "apps.kruise.io/resourcedistribution-system-namespaces";

/// Namespaces that get no copy, whatever selects them.
pub const SYSTEM_NAMESPACES: [&str; 2] = ["kube-public", "kube-system"];

/// Reason of [`NAMESPACE_NOT_EXISTS`](super::conditions::NAMESPACE_NOT_EXISTS) that is True.
pub const NAMESPACE_MISSING: &str = "namespace not found or is terminating";
/// Reason of [`CONFLICT_OCCURRED`](super::conditions::CONFLICT_OCCURRED) that is True.
pub const CONFLICTS: &str =
    "conflict with existing resources because of the same namespace, group, version, kind and name";
