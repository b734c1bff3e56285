//! A StatefulSet in miniature.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Fault, patched};
use crate::act::Act;
use crate::pods::{Pod, Ready};
use crate::stage::View;

/// The StatefulSet.
#[derive(Default)]
pub(super) struct Numbered {
    set: Value,
    pods: Vec<Pod>,
    disks: BTreeMap<String, String>,
    clock: u32,
}

impl Numbered {
    fn number(&self, pointer: &str) -> usize {
        let number = self.set.pointer(pointer).and_then(Value::as_u64);
        usize::try_from(number.unwrap_or_default()).unwrap()
    }

    fn partition(&self) -> usize {
        self.number("/spec/updateStrategy/rollingUpdate/partition")
    }

    fn reconcile(&mut self, fault: Fault) {
        let replicas = self.number("/spec/replicas");
        for pod in self.pods.split_off(replicas.min(self.pods.len())) {
            if fault == Fault::DeletesDisk {
                self.disks.remove(&format!("data-{}", pod.name));
            }
        }
        let image = self.set["spec"]["template"]["spec"]["containers"][0]["image"].clone();
        let image = image.as_str().unwrap().to_owned();
        let mut old: Vec<usize> = (0..self.pods.len())
            .filter(|index| self.pods[*index].image != image)
            .collect();
        if fault == Fault::UpdatesFirst {
            old.reverse();
        }
        for index in old.into_iter().skip(self.partition()) {
            self.pods[index].image.clone_from(&image);
            self.pods[index].restarts += 1;
        }
        for index in self.pods.len()..replicas {
            let disk = match fault {
                Fault::SharesDisk => "data-db-0".to_owned(),
                _ => format!("data-db-{index}"),
            };
            self.clock += 1;
            self.disks
                .entry(disk.clone())
                .or_insert_with(|| format!("disk-{}", self.clock));
            let created = if fault == Fault::CreatesAtOnce {
                1
            } else {
                self.clock
            };
            let is_old = index < self.partition() || fault == Fault::ReturnsOld && self.partition() > 0;
            self.pods.push(Pod {
                name: format!("db-{index}"),
                uid: format!("uid-db-{}", self.clock),
                address: format!("10.2.0.{}", self.clock),
                node: "kwok-0".into(),
                restarts: 0,
                image: if is_old { "nginx:3".into() } else { image.clone() },
                ready: Ready::Yes,
                times: [created, self.clock + 1].map(|second| format!("2026-01-01T00:00:{second:02}Z")),
                disks: vec![disk],
            });
        }
    }

    pub(super) fn run(&mut self, fault: Fault, act: &Act) -> String {
        match act {
            Act::Apply => {
                self.set = json!({"spec": {
                    "replicas": 3,
                    "updateStrategy": {"rollingUpdate": {}},
                    "template": {"spec": {"containers": [{"image": "nginx:3"}]}},
                }});
            }
            Act::Patch { kind, body } => patched(&mut self.set, *kind, body),
            Act::Explain => {
                let held = self.pods.iter().filter(|pod| pod.image == "nginx:3");
                let line = |pod: &Pod| format!("  pods/{}: stays: the partition holds it\n", pod.name);
                return held.map(line).collect();
            }
            _ => panic!("not of this one: {act:?}"),
        }
        self.reconcile(fault);
        String::new()
    }

    pub(super) fn view(&self) -> View {
        let mut set = self.set.clone();
        if set.is_object() {
            let replicas = self.pods.len();
            set["status"] = json!({"replicas": replicas, "readyReplicas": replicas});
            if replicas > self.partition() {
                set["status"]["updatedReadyReplicas"] = json!(replicas - self.partition());
            }
        }
        View {
            set,
            pods: self.pods.clone(),
            disks: self.disks.clone(),
            ..View::default()
        }
    }
}
