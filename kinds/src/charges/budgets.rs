//! Budgets: reviews charge pods that become unavailable.

use std::sync::Arc;

use kruise_admission::{lookup::Decoded, protocol::Write};
use kruise_api::{meta::ObjectMeta, podunavailablebudget::PodUnavailableBudget};
use kruise_plan_kit::{ResourceId, ledger::status_patch};
use kruise_runtime::caches::CacheId;
use serde_json::Value;

use super::{Change, Charged};
use crate::podunavailablebudget::cached::BUDGETS;
use kruise_runtime::parsed::Parsed;

impl Charged for PodUnavailableBudget {
    type Cached = Parsed<Self>;

    const RESOURCE: ResourceId = kruise_api::podunavailablebudget::RESOURCE;
    const CACHE: CacheId<Self::Cached> = BUDGETS;
    const ATTEMPTS: u32 = 12;

    fn of_cached(cached: &Self::Cached) -> Decoded<Self> {
        cached.object.clone().map(Arc::new)
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
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
