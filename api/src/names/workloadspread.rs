//! Keys of WorkloadSpreads and of the pods in their subsets. Wire format.

/// Pod annotation: the WorkloadSpread and its subset that the pod is in, JSON.
pub const MATCHED: &str = "apps.kruise.io/matched-workloadspread";
/// WorkloadSpread annotation, `true`: metadata of existing pods is not patched.
pub const IGNORES_METADATA: &str = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata";
/// Key of the configuration: kinds of workload that WorkloadSpreads may be for.
pub const WORKLOADS: &str = "WorkloadSpread_Watch_Custom_Workload_WhiteList";
