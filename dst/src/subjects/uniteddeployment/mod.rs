//! A UnitedDeployment of CloneSets whose template, replicas, partitions and subsets change, whose workloads users edit and
//! delete, which is itself deleted and created again, and beside which others have workloads that look like its own.

mod generate;
mod oracles;
mod start;
mod user;

use serde_json::Value;
use start::{CONTROLLER, Edit, NAME, SUBSET, Size, Start, UNITED};

use super::{
    cloneset::draft::CLONESETS,
    podunavailablebudget::start::{APPS_STATEFULSETS, DEPLOYMENTS, REPLICASETS},
};
use crate::engine::{
    oracles::Oracles,
    resource::{CLAIMS, NODES, PODS, REVISIONS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// UnitedDeployments.
pub struct UnitedDeployment;

impl Subject for UnitedDeployment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    /// Its own, and that of its workloads: their controller runs, too.
    fn definitions(&self) -> Vec<Value> {
        vec![
            kruise_api::cloneset::crd::manifest("kruise-system"),
            kruise_api::uniteddeployment::KIND.manifest("kruise-system"),
        ]
    }

    fn resources(&self) -> &'static [Resource] {
        &[
            UNITED,
            CLONESETS,
            APPS_STATEFULSETS,
            DEPLOYMENTS,
            REPLICASETS,
            PODS,
            REVISIONS,
            NODES,
            CLAIMS,
        ]
    }

    fn selectors(&self) -> &'static [&'static str] {
        &[SUBSET]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("UnitedDeployment", clean())]
    }

    fn is_release(&self, _: &Value) -> bool {
        false
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::UnitedDeploymentUser { start };
        Ok((Box::new(user), Box::new(oracles::UnitedDeploymentOracles)))
    }
}

/// A UnitedDeployment is updated in part, scaled, given other subsets, replaced and rolled back, and nothing fails.
fn clean() -> Scenario {
    let two = Size::Is("2".to_owned());
    let edits = [
        (10_000, Edit::Partition(0, 1)),
        (10_001, Edit::Image(2)),
        (25_000, Edit::Scale(7)),
        (35_000, Edit::Topology(vec![(0, Size::Free), (2, two)])),
        (50_000, Edit::ChildReplicas(0, 1)),
        (55_000, Edit::Foreign(0)),
        (60_000, Edit::DeleteChild(2)),
        (75_000, Edit::Env(1)),
        (90_000, Edit::Scale(1)),
        (100_000, Edit::Scale(6)),
        (115_000, Edit::Replace(true)),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(Start::default()).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
