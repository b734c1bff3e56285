//! A UnitedDeployment in miniature.

use serde_json::{Value, json};

use super::Fault;
use super::zones::{node, pod, zones};
use crate::act::Act;
use crate::pods::Pod;
use crate::stage::View;

/// CloneSets of three zones, and their pods.
#[derive(Default)]
pub(super) struct Fleet {
    children: Vec<Value>,
    pods: Vec<Pod>,
    updated: usize,
    /// It says of every subset that it is held.
    holds_all: bool,
}

impl Fleet {
    fn create(&mut self, fault: Fault) {
        for (number, zone) in [(1, "zone-a"), (2, "zone-b"), (3, "zone-c"), (4, "zone-c")] {
            let name = format!("fleet-{zone}-x");
            let owner = if fault == Fault::DisownsChild {
                "other"
            } else {
                "fleet"
            };
            let child = json!({"metadata": {"name": name, "labels": {"apps.kruise.io/subset-name": zone},
                "ownerReferences": [{"uid": owner}]}});
            if !self.children.contains(&child) {
                self.children.push(child);
            }
            self.pods.push(pod(format!("{name}-{number}"), number, zone));
        }
        if fault == Fault::MixesZones {
            self.pods[0].node = node("zone-b").to_owned();
            self.pods[1].node = node("zone-a").to_owned();
        }
        self.updated = 4;
    }

    fn update(&mut self, fault: Fault, patch: &Value) {
        let [strategy, image] = [0, 1].map(|index| &patch[index]["value"]);
        assert_eq!(
            *strategy,
            json!({"type": "Manual", "manualUpdate": {"partitions": {"zone-b": 1, "zone-c": 2}}})
        );
        let index = usize::from(fault == Fault::UpdatesOtherZone);
        self.pods[index].image = image.as_str().unwrap_or_default().to_owned();
        self.pods[index].restarts += 1;
        self.updated = 1;
        self.holds_all = fault == Fault::HoldsAll;
    }

    pub(super) fn run(&mut self, fault: Fault, act: &Act) -> String {
        match act {
            Act::Apply => self.create(fault),
            Act::Patch { body, .. } => self.update(fault, body),
            Act::Explain => {
                let line = |zone: &str| {
                    let held = self.holds_all || zone != "zone-a";
                    let held = if held {
                        ", of which 1 stay at older revisions"
                    } else {
                        ""
                    };
                    format!("  subset {zone} has fleet-{zone}-x{held}\n")
                };
                return ["zone-a", "zone-b", "zone-c"].map(line).concat();
            }
            _ => panic!("not of this one: {act:?}"),
        }
        String::new()
    }

    pub(super) fn view(&self) -> View {
        let count = self.pods.len();
        if count == 0 {
            return View::default();
        }
        let status = json!({"replicas": count, "readyReplicas": count, "updatedReadyReplicas": self.updated});
        View {
            set: json!({"metadata": {"uid": "fleet"}, "spec": {"replicas": 4}, "status": status}),
            children: self.children.clone(),
            pods: self.pods.clone(),
            zones: zones(),
            ..View::default()
        }
    }
}
