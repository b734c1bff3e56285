//! Keys that say where pods belong: subsets of WorkloadSpreads and UnitedDeployments, what PersistentPodStates remember,
//! and what ResourceDistributions copy. Wire format.

/// Pod annotation: the WorkloadSpread and its subset that the pod is in, JSON.
pub const MATCHED_SPREAD: &str = "apps.kruise.io/matched-workloadspread";
/// WorkloadSpread annotation, `true`: metadata of pods that there are already is not patched.
pub const SPREAD_IGNORES_METADATA: &str = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata";
/// Key of the configuration: kinds of workload that WorkloadSpreads may be for.
pub const SPREAD_WORKLOADS: &str = "WorkloadSpread_Watch_Custom_Workload_WhiteList";

/// Label of a UnitedDeployment's workloads and of their pods: name of the subset.
pub const SUBSET_NAME: &str = "apps.kruise.io/subset-name";
/// Label of a UnitedDeployment's workloads and of their pods: the revision of the UnitedDeployment.
pub const SUBSET_REVISION: &str = "apps.kruise.io/controller-revision-hash";
/// Label of a UnitedDeployment's pods: `true` if it is kept although it cannot be scheduled.
pub const RESERVED_POD: &str = "apps.kruise.io/united-deployment-reserved-pod";
/// Annotation of a UnitedDeployment's workload: the patch of its subset.
pub const SUBSET_PATCH: &str = "apps.kruise.io/subset-patch";

/// Pod annotation: name of the PersistentPodState that said where the pod belongs.
pub const INJECTED_STATE: &str = "kruise.io/injected-persistent-pod-state";
/// Workload annotation, `true`: it gets a PersistentPodState, made of the three annotations below.
pub const STATE_GENERATED: &str = "kruise.io/auto-generate-persistent-pod-state";
/// Workload annotation: labels of nodes in which a pod's old and new node must agree, joined by commas.
pub const STATE_REQUIRED: &str = "kruise.io/required-persistent-topology";
/// Workload annotation: labels of nodes in which they had better agree.
pub const STATE_PREFERRED: &str = "kruise.io/preferred-persistent-topology";
/// Workload annotation: annotations of pods that are remembered.
pub const STATE_ANNOTATIONS: &str = "kruise.io/persistent-pod-annotations";
/// Key of the configuration: kinds of workload that PersistentPodStates may be for.
pub const STATE_WORKLOADS: &str = "PPS_Watch_Custom_Workload_WhiteList";

/// Annotation of a copy: SHA-256 of the resource, as its ResourceDistribution says it.
pub const COPY_HASH: &str = "kruise.io/resourcedistribution.resource.hashcode";
/// Annotation of a copy: name of its ResourceDistribution.
pub const COPY_FROM: &str = "kruise.io/resourcedistribution.resource.from";
