//! A ResourceDistribution above namespaces that come, go and change, whose copies users edit and delete, and where
//! others have objects of the same name.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use start::{DISTRIBUTIONS, Edit, NAME, SECRETS, Start, Targets};

/// ResourceDistributions.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("resourcedistribution-controller"),
    definitions: &[&kruise_api::resourcedistribution::KIND],
    resources: &[DISTRIBUTIONS, NAMESPACES, SECRETS, CONFIGMAPS],
    scenario: Some(generate::generate),
    clean: || vec![("ResourceDistribution", clean())],
    remembers_pods: false,
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let oracles = oracles::ResourceDistributionOracles {
            copies: start.resource(),
            refused: start.refused,
        };
        begun(start, oracles)
    },
    ..Subject::PLAIN
};

/// Namespaces that come and change, an edit, a deletion and an object in the way, while nothing fails.
fn clean() -> Scenario {
    let start = Start {
        namespaces: 4,
        secret: true,
        targets: Targets::All,
        refused: false,
    };
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
    Scenario::of_edits(NAME, &start, edits)
}
