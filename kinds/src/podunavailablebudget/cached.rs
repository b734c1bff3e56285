//! The cache of budgets.

use kruise_api::podunavailablebudget::{PodUnavailableBudget, RESOURCE};
use kruise_frame::caches::PODS;
use kruise_runtime::caches::CacheId;
use kruise_runtime::parsed::Parsed;

/// PodUnavailableBudgets in the served version. Those of a namespace are a range of the cache (`Snapshot::list`).
/// Webhooks and plans of workloads read them, too.
pub const BUDGETS: CacheId<Parsed<PodUnavailableBudget>> =
    CacheId::of("podunavailablebudgets", RESOURCE).before(&[PODS.name]);
