//! PodUnavailableBudgets.

mod edit;
mod generate;
mod oracles;
pub mod start;
mod user;

use std::sync::{Arc, atomic::AtomicU32};

use edit::Edit;
use oracles::BudgetOracles;
use serde::Deserialize;
use serde_json::Value;
use start::{APPS_STATEFULSETS, BUDGETS, CONTROLLER, DEPLOYMENTS, NAME, REPLICASETS};
use user::BudgetUser;

use crate::engine::{
    oracles::Oracles,
    resource::{NAMESPACES, PODS, Resource},
    scenario::Scenario,
    subject::{Subject, User},
};

/// A budget above a CloneSet, a StatefulSet or a Deployment.
pub struct PodUnavailableBudget;

impl Subject for PodUnavailableBudget {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::podunavailablebudget::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[
            BUDGETS,
            PODS,
            NAMESPACES,
            DEPLOYMENTS,
            REPLICASETS,
            APPS_STATEFULSETS,
        ]
    }

    fn uses_all_webhooks(&self) -> bool {
        true
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn is_release(&self, change: &Value) -> bool {
        Edit::deserialize(change).is_ok_and(|edit| edit.is_release())
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: start::Start = scenario.start(NAME)?;
        let drains = Arc::new(AtomicU32::new(0));
        let user = BudgetUser::new(start.clone(), drains.clone());
        Ok((Box::new(user), Box::new(BudgetOracles::new(start, drains))))
    }
}
