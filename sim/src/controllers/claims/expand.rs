//! Claims grow: first the volume, then the file system on it.
//!
//! A volume that grows has the condition `Resizing` for two seconds, then `FileSystemResizePending`. Its file system
//! grows in another second where a node has it mounted. With the parameter `sim.kruise.io/expansion: offline` of the
//! claim's class it grows only for a pod that is given a node after the volume has grown.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Claims, Time, path};
use crate::object::{at, seconds};
use crate::storage::{self, amount, requested};
use crate::store::Key;
use crate::validation::text;
use crate::world::Client;

/// How long a volume takes to grow, and a file system.
const VOLUME: Duration = Duration::from_secs(2);
const FILE_SYSTEM: Duration = Duration::from_secs(1);

const RESIZING: &str = "Resizing";
const PENDING: &str = "FileSystemResizePending";

/// The parameter of a class that says when its file systems grow.
const PARAMETER: &str = "sim.kruise.io/expansion";

impl Claims {
    /// Lets a bound claim grow to what it requests.
    pub(super) fn expand(&mut self, client: &mut Client<'_>, key: &Key, claim: &Value, time: Time) {
        let over = time == Time::IsOver;
        if has(claim, PENDING) {
            if !self.growing.contains_key(key) {
                self.growing.insert(key.clone(), self.mounted(key));
            }
            if !self.grows(client, key, claim) {
                self.timers.set(key.clone(), None);
            } else if over {
                self.finish(client, key, claim);
            } else {
                self.wait(client, key, FILE_SYSTEM);
            }
        } else if has(claim, RESIZING) {
            if over {
                self.grow_volume(client, key, claim);
            } else {
                self.wait(client, key, VOLUME);
            }
        } else if requested(claim) > amount(claim, "/status/capacity/storage") {
            let storage = at(claim, "/spec/resources/requests/storage");
            let status = json!({"allocatedResources": {"storage": storage},
                "allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"},
                "conditions": [condition(client, RESIZING, None)]});
            report(client, key, &status);
            if self.events {
                let message = format!("External resizer is resizing volume {}", volume(claim));
                client.event(claim, "external-resizer", "Normal", RESIZING, &message);
            }
        }
    }

    fn wait(&mut self, client: &Client<'_>, key: &Key, time: Duration) {
        if !self.timers.has(key) {
            self.timers.set(key.clone(), client.now.checked_add(time).ok());
        }
    }

    /// The volume has grown; its file system has not.
    fn grow_volume(&mut self, client: &mut Client<'_>, key: &Key, claim: &Value) {
        let storage = at(claim, "/status/allocatedResources/storage");
        let path = format!("/api/v1/persistentvolumes/{}", volume(claim));
        client.merge(&path, &json!({"spec": {"capacity": {"storage": storage}}}));
        let message = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
        let status = json!({"allocatedResourceStatuses": {"storage": "NodeResizePending"},
            "conditions": [condition(client, PENDING, Some(message))]});
        report(client, key, &status);
        self.growing.insert(key.clone(), self.mounted(key));
        if self.events {
            let message = "Require file system resize of volume on node";
            client.event(
                claim,
                "external-resizer",
                "Normal",
                "FileSystemResizeRequired",
                message,
            );
        }
    }

    fn finish(&mut self, client: &mut Client<'_>, key: &Key, claim: &Value) {
        let storage = at(claim, "/status/allocatedResources/storage");
        let status =
            json!({"capacity": {"storage": storage}, "allocatedResourceStatuses": null, "conditions": null});
        report(client, key, &status);
        self.growing.remove(key);
        if self.events {
            let volume = volume(claim);
            let message = format!("MountVolume.NodeExpandVolume succeeded for volume {volume:?}");
            client.event(claim, "kubelet", "Normal", "FileSystemResizeSuccessful", &message);
        }
    }

    /// The uids of pods on nodes that use a claim.
    fn mounted(&self, key: &Key) -> BTreeSet<String> {
        let users = self.users.values();
        let users = users.filter(|user| user.placed && user.claims.contains(key));
        users.map(|user| user.uid.clone()).collect()
    }

    /// Whether the file system of a grown volume can grow now.
    fn grows(&self, client: &Client<'_>, key: &Key, claim: &Value) -> bool {
        let class = storage::class_of(client.api, claim);
        let parameter = class
            .as_ref()
            .and_then(|class| class.get("parameters")?.get(PARAMETER));
        let before = self
            .growing
            .get(key)
            .filter(|_| parameter == Some(&"offline".into()));
        self.mounted(key)
            .iter()
            .any(|uid| before.is_none_or(|before| !before.contains(uid)))
    }
}

fn volume(claim: &Value) -> &str {
    at(claim, "/spec/volumeName")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn has(claim: &Value, kind: &str) -> bool {
    let list = at(claim, "/status/conditions").and_then(Value::as_array);
    let mut list = list.into_iter().flatten();
    list.any(|one| text(one, "type") == kind && text(one, "status") == "True")
}

fn condition(client: &Client<'_>, kind: &str, message: Option<&str>) -> Value {
    let mut condition = json!({"type": kind, "status": "True", "lastTransitionTime": seconds(client.now)});
    if let (Value::Object(members), Some(message)) = (&mut condition, message) {
        members.insert("message".into(), message.into());
    }
    condition
}

fn report(client: &mut Client<'_>, key: &Key, status: &Value) {
    client.merge(&format!("{}/status", path(key)), &json!({"status": status}));
}
