//! What OpenKruise stored is taken over as it is.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use jiff::Timestamp;
use kruise_api::workloadspread::WorkloadSpread;
use kruise_plan_kit::{Explain, Memory, workloads::Known};
use kruise_plan_spread::workloadspread::{Nodes, Snapshot, plan};
use kruise_plan_test_kit::decode;
use kruise_views::{NodeView, PodView, WorkloadView};
use serde_json::Value;

fn stored(version: &str, name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures/upstream")
        .join(version);
    let text = fs::read_to_string(folder.join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

struct NoNodes;

impl Nodes for NoNodes {
    fn get(&self, _: &str) -> Option<Arc<NodeView>> {
        None
    }
}

#[test]
fn what_openkruise_stored_is_taken_over_without_a_write_or_an_event() {
    for version in ["1.8.4", "1.9.0", "main"] {
        for moment in ["rest", "mid"] {
            let spreads = stored(version, &format!("{moment}-workloadspreads.json"));
            assert!(!spreads.is_empty());
            // The CloneSets at another moment have the same replicas.
            let clonesets = stored(version, "rest-clonesets.v1alpha1.apps.kruise.io.json");
            for spread in spreads {
                let spread = WorkloadSpread::from_value(spread).unwrap();
                let name = spread.spec.target_ref.as_ref().unwrap().name.clone();
                let mut found = clonesets.iter().filter(|set| set["metadata"]["name"] == name);
                let target: Arc<WorkloadView> = decode(found.next().unwrap());
                let pods: Vec<Arc<PodView>> = stored(version, &format!("{moment}-pods.json"))
                    .iter()
                    .map(decode)
                    .collect();
                let is_own =
                    |pod: &&Arc<PodView>| pod.controller.as_ref().is_some_and(|owner| *owner.name == *name);
                let pods: Vec<Arc<PodView>> = pods.iter().filter(is_own).cloned().collect();
                assert_eq!(pods.len(), 4);
                let snapshot = Snapshot {
                    spread: &spread,
                    target: &Known::Found(target),
                    replica_sets: &[],
                    pods: &pods,
                    nodes: &NoNodes,
                    listed: &[],
                    before: &BTreeSet::new(),
                    memory: &Memory::default(),
                    explain: Explain::No,
                };
                let now: Timestamp = "2026-11-21T05:00:00Z".parse().unwrap();
                let plan = plan(&snapshot, now);
                assert!(plan.writes.is_empty(), "{version} {moment}: {:?}", plan.writes);
                assert_eq!((plan.status, plan.events.len()), (None, 0), "{version} {moment}");
            }
        }
    }
}
