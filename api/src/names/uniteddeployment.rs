//! Keys of the workloads and pods of UnitedDeployments. Wire format.

/// Label of a UnitedDeployment's workloads and of their pods: name of the subset.
pub const SUBSET_NAME: &str = "apps.kruise.io/subset-name";
/// Label of a UnitedDeployment's workloads and of their pods: the revision of the UnitedDeployment.
pub const SUBSET_REVISION: &str = "apps.kruise.io/controller-revision-hash";
/// Label of a UnitedDeployment's pods: `true` if it is kept although it cannot be scheduled.
pub const RESERVED_POD: &str = "apps.kruise.io/united-deployment-reserved-pod";
/// Annotation of a UnitedDeployment's workload: the patch of its subset.
pub const SUBSET_PATCH: &str = "apps.kruise.io/subset-patch";
