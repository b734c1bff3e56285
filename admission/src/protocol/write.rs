//! What has to be stored before a request passes.

use std::sync::Arc;

use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_api::workloadspread::WorkloadSpread;

use super::ObjectName;

/// A change of a status that a review depends on.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A budget is charged.
    Charge(Charge),
    /// A pod of a WorkloadSpread comes or goes.
    Count(Count),
}

/// A charge to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// The budget that was asked. The charge is for no other version of it.
    pub before: Arc<PodUnavailableBudget>,
    /// The budget with the charge in its status.
    pub after: Arc<PodUnavailableBudget>,
    /// An eviction is to be tried again if the charge cannot be stored.
    pub is_eviction: bool,
}

impl Charge {
    /// The budget.
    pub fn budget(&self) -> ObjectName {
        let metadata = &self.before.metadata;
        ObjectName::new(&metadata.namespace, &metadata.name)
    }
}

/// A pod that comes or goes, to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The WorkloadSpread.
    pub spread: ObjectName,
    /// The WorkloadSpread with the pod in its status. `None` if nothing is to be stored, but the WorkloadSpread is
    /// to be read from the API server before the pod passes: what is known of it may be out of date.
    pub after: Option<Arc<WorkloadSpread>>,
    /// An eviction is to be tried again if it cannot be stored.
    pub is_eviction: bool,
}

impl Write {
    /// What it does, for metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Charge(_) => "charge",
            Self::Count(_) => "count",
        }
    }

    /// The object whose status changes.
    pub fn object(&self) -> ObjectName {
        match self {
            Self::Charge(charge) => charge.budget(),
            Self::Count(count) => count.spread.clone(),
        }
    }

    /// Is an eviction to be tried again if it cannot be stored?
    pub fn is_eviction(&self) -> bool {
        match self {
            Self::Charge(charge) => charge.is_eviction,
            Self::Count(count) => count.is_eviction,
        }
    }
}
