//! WorkloadSpreads: reviews count pods that come and go.

use std::sync::Arc;

use kruise_admission::{lookup::Decoded, protocol::Write};
use kruise_api::{meta::ObjectMeta, workloadspread::WorkloadSpread};
use kruise_plan_kit::{ResourceId, spread::status_patch};
use kruise_runtime::caches::CacheId;
use serde_json::Value;

use super::{Change, Charged};
use crate::workloadspread::cached::SPREADS;
use kruise_runtime::parsed::Parsed;

impl Charged for WorkloadSpread {
    type Cached = Parsed<Arc<Self>>;

    const RESOURCE: ResourceId = kruise_api::workloadspread::RESOURCE;
    const CACHE: CacheId<Self::Cached> = SPREADS;
    /// The controller and every replica write this status whenever a workload is scaled. A pod that waits is better
    /// than one that is refused.
    const ATTEMPTS: u32 = 30;

    fn of_cached(cached: &Self::Cached) -> Decoded<Self> {
        cached.object.clone()
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn change(write: &Write) -> Change<Self> {
        match write {
            Write::Count(count) => count.after.clone().map_or(Change::Read, Change::Store),
            Write::Charge(_) => Change::Nothing,
        }
    }

    fn status_patch(&self, after: &Self) -> Option<Value> {
        status_patch(&self.status, &after.status)
    }
}
