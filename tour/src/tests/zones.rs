//! A CloneSet with a WorkloadSpread in miniature.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Fault;
use crate::act::Act;
use crate::pods::{Pod, Ready};
use crate::stage::View;

/// Nodes, and their zones.
const NODES: [(&str, &str); 3] = [("kwok-0", "zone-a"), ("kwok-1", "zone-b"), ("kwok-2", "zone-c")];

/// Pods, of which two are in the first zone while it takes them.
#[derive(Default)]
pub(super) struct Zones {
    pods: Vec<Pod>,
    born: u32,
    is_closed: bool,
}

/// The zones of all nodes.
pub(super) fn zones() -> BTreeMap<String, String> {
    let zones = NODES.into_iter();
    zones
        .map(|(node, zone)| (node.to_owned(), zone.to_owned()))
        .collect()
}

/// The node of a zone.
pub(super) fn node(zone: &str) -> &'static str {
    let found = NODES.into_iter().find(|(_, of)| *of == zone);
    found.map_or("", |(node, _)| node)
}

/// A pod in service.
pub(super) fn pod(name: String, born: u32, zone: &str) -> Pod {
    Pod {
        uid: format!("uid-{name}-{born}"),
        address: format!("10.3.0.{born}"),
        name,
        node: node(zone).to_owned(),
        restarts: 0,
        image: "nginx:3".into(),
        ready: Ready::Yes,
        times: Default::default(),
        disks: Vec::new(),
    }
}

impl Zones {
    fn fill(&mut self, first: &str) {
        while self.pods.len() < 4 {
            self.born += 1;
            let zone = if self.pods.len() < 2 { first } else { "zone-b" };
            self.pods.push(pod(format!("api-{}", self.born), self.born, zone));
        }
    }

    pub(super) fn run(&mut self, fault: Fault, act: &Act) -> String {
        match act {
            Act::Apply if fault == Fault::FillsSecondZone => self.fill("zone-b"),
            Act::Apply => self.fill("zone-a"),
            Act::FailZone(zone) => {
                let stays = |pod: &Pod| pod.node != node(zone) && fault != Fault::MovesAll;
                self.pods.retain(stays);
                self.fill("zone-b");
                self.is_closed = fault != Fault::LeavesOpen;
            }
            Act::RepairZone(_) if fault == Fault::MovesBack => {
                self.pods.pop();
                self.fill("zone-b");
            }
            Act::RepairZone(_) => {}
            Act::Explain if self.is_closed => {
                return "  subset zone-a has 0 pods of 2 at most; it takes no new pods\n  subset zone-b has 4 pods".into();
            }
            Act::Explain => return "  subset zone-a has 0 pods of 2 at most".into(),
            _ => panic!("not of this one: {act:?}"),
        }
        String::new()
    }

    pub(super) fn view(&self) -> View {
        let count = self.pods.len();
        if count == 0 {
            return View::default();
        }
        let status = json!({"replicas": count, "readyReplicas": count, "updatedReadyReplicas": count});
        let subsets: [Value; 2] = [
            json!({"name": "zone-a", "replicas": 2}),
            json!({"name": "zone-b", "replicas": 2}),
        ];
        View {
            set: json!({"spec": {"replicas": 4}, "status": status}),
            spread: json!({"status": {"subsetStatuses": subsets}}),
            pods: self.pods.clone(),
            zones: zones(),
            ..View::default()
        }
    }
}
