//! WorkloadSpreads: reviews count pods that come and go.

use std::sync::Arc;

use kruise_admission::{
    lookup::{Lookup, LookupResult, ObjectName},
    protocol::Write,
};
use kruise_api::{meta::ObjectMeta, workloadspread::WorkloadSpread};
use kruise_frame::{caches::SPREADS, parsed::Parsed};
use kruise_plan_kit::{ResourceId, spread::status_patch};
use kruise_runtime::caches::CacheId;
use serde_json::Value;

use super::{Change, Charged, Read};

impl Charged for WorkloadSpread {
    type Cached = Parsed<Arc<Self>>;

    const RESOURCE: ResourceId = ResourceId::WORKLOAD_SPREADS;
    const CACHE: CacheId<Self::Cached> = SPREADS;
    /// The controller and every replica write this status whenever a workload is scaled. A pod that waits is better than one
    /// that is refused.
    const ATTEMPTS: u32 = 30;

    fn of_value(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }

    fn of_cached(cached: &Self::Cached) -> Read<Self> {
        cached.object.clone()
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn lookup(name: &ObjectName) -> Lookup {
        Lookup::Spread(name.clone())
    }

    fn result(read: Read<Self>) -> LookupResult {
        LookupResult::Spread(read)
    }

    fn results(all: Vec<Arc<Self>>) -> LookupResult {
        LookupResult::Spreads(all)
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
