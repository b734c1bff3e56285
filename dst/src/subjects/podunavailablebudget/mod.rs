//! PodUnavailableBudgets.

mod bugs;
mod edit;
mod generate;
mod oracles;
pub mod start;
mod user;

use std::sync::atomic::AtomicU32;

use crate::rules::prelude::*;
use edit::Edit;
use oracles::BudgetOracles;
use start::{APPS_STATEFULSETS, BUDGETS, DEPLOYMENTS, NAME, REPLICASETS};
use user::BudgetUser;

/// A budget above a CloneSet, a StatefulSet or a Deployment.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("podunavailablebudget-controller"),
    definitions: &[&kruise_api::podunavailablebudget::KIND],
    resources: &[
        BUDGETS,
        PODS,
        NAMESPACES,
        DEPLOYMENTS,
        REPLICASETS,
        APPS_STATEFULSETS,
    ],
    uses_all_webhooks: true,
    scenario: Some(generate::generate),
    // It ends what would keep pods from their end.
    is_release: |change| says(change, |edit: &Edit| matches!(edit, Edit::Open | Edit::Unlabel)),
    // Pods that it named it finds in its caches.
    remembers_pods: false,
    least: &[(BUDGETS, 15)],
    begin: |scenario| {
        let start: start::Start = scenario.start(NAME)?;
        let drains = Arc::new(AtomicU32::new(0));
        let user = BudgetUser::new(start.clone(), drains.clone());
        begun(user, BudgetOracles::new(start, drains))
    },
    ..Subject::PLAIN
};
