//! A UnitedDeployment of CloneSets whose template, replicas, partitions and subsets change, whose workloads users
//! edit and delete, which is itself deleted and created again, and beside which others have workloads that look
//! like its own.

mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::podunavailablebudget::start::{APPS_STATEFULSETS, DEPLOYMENTS, REPLICASETS};
use start::{Edit, NAME, SUBSET, Size, Start, Subset, UNITED};

/// UnitedDeployments.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("uniteddeployment-controller"),
    // Its own, and that of its workloads: their controller runs, too.
    definitions: &[&kruise_api::cloneset::KIND, &kruise_api::uniteddeployment::KIND],
    resources: &[
        UNITED,
        CLONESETS,
        APPS_STATEFULSETS,
        DEPLOYMENTS,
        REPLICASETS,
        PODS,
        REVISIONS,
        NODES,
        CLAIMS,
    ],
    selectors: &[SUBSET],
    scenario: Some(generate::generate),
    clean: || vec![("UnitedDeployment", clean())],
    owns: |pod, mirror| mirror.of(CLONESETS).objects.contains_key(pod.owner()),
    remembers_pods: false,
    least: &[(CLONESETS, 20), (UNITED, 8)],
    begin: |scenario| begun(scenario.start::<Start>(NAME)?, oracles::UnitedDeploymentOracles),
    ..Subject::PLAIN
};

/// A UnitedDeployment is updated in part, scaled, given other subsets, replaced and rolled back, and nothing fails.
fn clean() -> Scenario {
    let start = Start {
        replicas: 5,
        subsets: vec![(0, Size::Free), (1, Size::Free)],
        recreates: false,
        limit: 10,
    };
    let two: Subset = (2, Size::Is("2".to_owned()));
    let edits = [
        (10_000, Edit::Partition(0, 1)),
        (10_001, Edit::Image(2)),
        (25_000, Edit::Scale(7)),
        (35_000, Edit::Topology(vec![(0, Size::Free), two])),
        (50_000, Edit::ChildReplicas(0, 1)),
        (55_000, Edit::Foreign(0)),
        (60_000, Edit::DeleteChild(2)),
        (75_000, Edit::Env(1)),
        (90_000, Edit::Scale(1)),
        (100_000, Edit::Scale(6)),
        (115_000, Edit::Replace(true)),
    ];
    Scenario::of_edits(NAME, &start, edits)
}
