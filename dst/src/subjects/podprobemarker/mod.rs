//! PodProbeMarkers above pods and nodes whose agents report results.

mod agents;
mod generate;
mod oracles;
mod start;
mod user;

use serde_json::Value;
use start::{CONTROLLER, Edit, MARKERS, NAME, PROBES, Start};

use crate::engine::{
    oracles::Oracles,
    resource::{NODES, PODS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// PodProbeMarkers, with the NodePodProbes that they fill.
pub struct PodProbeMarker;

impl Subject for PodProbeMarker {
    fn name(&self) -> &'static str {
        NAME
    }

    fn component(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    fn definitions(&self) -> Vec<Value> {
        let kinds = [&kruise_api::podprobemarker::KIND, &kruise_api::nodepodprobe::KIND];
        kinds.map(|kind| kind.manifest("kruise-system")).into()
    }

    fn resources(&self) -> &'static [Resource] {
        &[PROBES, MARKERS, NODES, PODS]
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("PodProbeMarker", clean())]
    }

    fn is_release(&self, _change: &Value) -> bool {
        false
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let user = user::PodProbeMarkerUser { start };
        Ok((Box::new(user), Box::new(oracles::PodProbeMarkerOracles)))
    }
}

/// Markers and pods that come, change and go while nothing fails.
fn clean() -> Scenario {
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
    let steps = edits.map(|(at, edit)| (at, Action::edit(NAME, &edit)));
    let start = serde_json::to_value(Start::default()).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
