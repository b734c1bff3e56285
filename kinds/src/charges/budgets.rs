//! Budgets: reviews charge pods that become unavailable.

use std::sync::Arc;

use kruise_admission::{
    lookup::{Lookup, LookupResult, ObjectName},
    protocol::Write,
};
use kruise_api::{meta::ObjectMeta, podunavailablebudget::PodUnavailableBudget};
use kruise_frame::{caches::BUDGETS, parsed::Parsed};
use kruise_plan_kit::{ResourceId, ledger::status_patch};
use kruise_runtime::caches::CacheId;
use serde_json::Value;

use super::{Change, Charged, Read};

impl Charged for PodUnavailableBudget {
    type Cached = Parsed<Self>;

    const RESOURCE: ResourceId = ResourceId::POD_UNAVAILABLE_BUDGETS;
    const CACHE: CacheId<Self::Cached> = BUDGETS;
    const ATTEMPTS: u32 = 12;

    fn of_value(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }

    fn of_cached(cached: &Self::Cached) -> Read<Self> {
        cached.object.clone().map(Arc::new)
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn lookup(name: &ObjectName) -> Lookup {
        Lookup::Budget(name.clone())
    }

    fn result(read: Read<Self>) -> LookupResult {
        LookupResult::Budget(read)
    }

    fn results(all: Vec<Arc<Self>>) -> LookupResult {
        LookupResult::Budgets(all)
    }

    fn change(write: &Write) -> Change<Self> {
        match write {
            Write::Charge(charge) => Change::Store(charge.after.clone()),
            Write::Count(_) => Change::Nothing,
        }
    }

    fn status_patch(&self, after: &Self) -> Option<Value> {
        status_patch(&self.status, &after.status)
    }
}
