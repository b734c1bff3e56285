//! A ResourceDistribution above namespaces that come, go and change, whose copies users edit and delete, and where others have
//! objects of the same name.

mod generate;
mod oracles;
mod start;
mod user;

use serde_json::Value;
use start::{CONTROLLER, DISTRIBUTIONS, Edit, NAME, SECRETS, Start, Targets};

use crate::engine::{
    oracles::Oracles,
    resource::{CONFIGMAPS, NAMESPACES, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// ResourceDistributions.
pub struct ResourceDistribution;

impl Subject for ResourceDistribution {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        vec![kruise_api::resourcedistribution::KIND.manifest("kruise-system")]
    }

    fn resources(&self) -> &'static [Resource] {
        &[DISTRIBUTIONS, NAMESPACES, SECRETS, CONFIGMAPS]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("ResourceDistribution", clean())]
    }

    fn is_release(&self, _: &Value) -> bool {
        false
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let oracles = oracles::ResourceDistributionOracles {
            copies: start.resource(),
            refused: start.refused,
        };
        let user = user::ResourceDistributionUser { start };
        Ok((Box::new(user), Box::new(oracles)))
    }
}

/// Namespaces that come and change, an edit, a deletion and an object in the way, while nothing fails.
fn clean() -> Scenario {
    let start = Start::default();
    let edits = [
        (5_000, Edit::ChangeCopy(1, 9)),
        (10_000, Edit::DeleteCopy(2)),
        (15_000, Edit::Data(1)),
        (20_000, Edit::Targets(Targets::Team(true))),
        (25_000, Edit::Team(2, false)),
        (30_000, Edit::Foreign(2)),
        (35_000, Edit::Team(2, true)),
        (40_000, Edit::DeleteCopy(2)),
        (45_000, Edit::Namespace(5, true)),
        (50_000, Edit::Leave(1)),
    ];
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(start).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
