//! PodProbeMarkers above pods and nodes whose agents report results.

mod agents;
mod bugs;
mod generate;
mod oracles;
mod start;
mod user;

use crate::rules::prelude::*;
use start::{Edit, MARKERS, NAME, PROBES, Start};

/// PodProbeMarkers, with the NodePodProbes that they fill.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("PodProbeMarker-controller"),
    definitions: &[&kruise_api::podprobemarker::KIND, &kruise_api::nodepodprobe::KIND],
    resources: &[PROBES, MARKERS, NODES, PODS],
    scenario: Some(generate::generate),
    clean: || vec![("PodProbeMarker", clean())],
    remembers_pods: false,
    least: &[(PROBES, 15)],
    begin: |scenario| begun(scenario.start::<Start>(NAME)?, oracles::PodProbeMarkerOracles),
    ..Subject::PLAIN
};

/// Markers and pods that come, change and go while nothing fails.
fn clean() -> Scenario {
    let start = Start {
        nodes: 3,
        pods: 6,
        probes: [1, 2],
    };
    let edits = [
        (10_000, Edit::Result(0, "Failed".into())),
        (15_000, Edit::Probes(0, 2)),
        (20_000, Edit::Pod),
        (25_000, Edit::Label(1, false)),
        (30_000, Edit::Result(0, "Unknown".into())),
        (35_000, Edit::Remove(2)),
        (40_000, Edit::Delete(0)),
        (50_000, Edit::Again(0)),
        (55_000, Edit::Delete(1)),
    ];
    Scenario::of_edits(NAME, &start, edits)
}
