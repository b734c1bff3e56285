//! Keys of PodUnavailableBudgets and of the pods that they protect. Wire format.

pub use super::{PUB_PROTECT_OPERATIONS as OPERATIONS, PUB_PROTECT_TOTAL_REPLICAS as TOTAL_REPLICAS};

/// Pod annotation: name of the budget that protects it.
pub const RELATED: &str = "pub.kruise.io/related-pub";
/// Older key of [`RELATED`]: both are written.
pub const RELATED_LEGACY: &str = "kruise.io/related-pub";
/// Pod annotation, `true`: no budget protects the pod.
pub const NO_PROTECT: &str = "pub.kruise.io/no-protect";
/// Prefix of pod labels: with any of them a pod counts as out of service.
pub const UNAVAILABLE_PREFIX: &str = "unavailable-pod.kruise.io/";
