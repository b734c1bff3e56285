//! Volumes for claims, as their classes say.
//!
//! * `Immediate`: a second after the claim is there.
//! * `WaitForFirstConsumer`: a second after the scheduler chose the node of a pod that uses it.
//! * A claim whose class is missing, or that has none, stays `Pending`; an event says why. One that was left to the
//!   default class gets it when there is one.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Claims, Time, path};
use crate::object::{at, metadata_text};
use crate::storage::{self, Binding};
use crate::store::{Key, ResourceId};
use crate::world::Client;

/// From a claim to its volume.
const PROVISIONING: Duration = Duration::from_secs(1);

/// Who records events about claims without a volume.
const BINDER: &str = "persistentvolume-controller";

impl Claims {
    /// Binds a claim, or notes why it has to wait.
    pub(super) fn provision(
        &mut self,
        client: &mut Client<'_>,
        key: &Key,
        claim: &Value,
        volume: String,
        time: Time,
    ) {
        let (kind, reason, message) = match storage::binding(client.api, claim) {
            Binding::AtOnce => return self.bind(client, key, claim, volume, None),
            Binding::Provisioned(class) if time == Time::IsOver => {
                return self.bind(client, key, claim, volume, Some(&class));
            }
            Binding::Provisioned(_) => {
                if !self.timers.has(key) {
                    self.timers
                        .set(key.clone(), client.now.checked_add(PROVISIONING).ok());
                }
                return;
            }
            Binding::Defaulted(class) => {
                client.merge(&path(key), &json!({"spec": {"storageClassName": class}}));
                return;
            }
            Binding::Delayed => {
                let message = "waiting for first consumer to be created before binding";
                ("Normal", "WaitForFirstConsumer", message.to_owned())
            }
            Binding::Unclassed => {
                let message = "no persistent volumes available for this claim and no storage class is set";
                ("Normal", "FailedBinding", message.to_owned())
            }
            Binding::Missing(class) => {
                let message = format!("storageclass.storage.k8s.io {class:?} not found");
                ("Warning", "ProvisioningFailed", message)
            }
        };
        self.timers.set(key.clone(), None);
        if self.unbound.insert(key.clone(), reason) != Some(reason) {
            client.event(claim, BINDER, kind, reason, &message);
        }
    }

    /// Makes a volume for a claim, and binds the two.
    fn bind(
        &mut self,
        client: &mut Client<'_>,
        key: &Key,
        claim: &Value,
        volume: String,
        class: Option<&Value>,
    ) {
        let spec = |name: &str| {
            claim
                .pointer(&format!("/spec/{name}"))
                .cloned()
                .unwrap_or_default()
        };
        let of_class = |name: &str| class.and_then(|class| class.get(name)?.as_str());
        let driver = of_class("provisioner").unwrap_or("simulated");
        let capacity = json!({"storage": spec("resources").pointer("/requests/storage")});
        let mut object = json!({
            "metadata": {"name": volume, "annotations": {"pv.kubernetes.io/provisioned-by": driver}},
            "spec": {
                "capacity": capacity, "accessModes": spec("accessModes"),
                "persistentVolumeReclaimPolicy": of_class("reclaimPolicy").unwrap_or("Delete"),
                "volumeMode": spec("volumeMode"), "storageClassName": spec("storageClassName"),
                "csi": {"driver": driver, "volumeHandle": volume},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": key.namespace.as_ref(),
                    "name": key.name.as_ref(), "uid": metadata_text(claim, "uid")},
            },
        });
        if let Some(Value::Object(members)) = object.get_mut("spec") {
            members.retain(|_, value| !value.is_null());
        }
        client.post("/api/v1/persistentvolumes", &object);
        let status = json!({"status": {"phase": "Bound"}});
        client.merge(&format!("/api/v1/persistentvolumes/{volume}/status"), &status);
        let path = path(key);
        let mut annotations =
            json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
        if let (Some(_), Value::Object(members)) = (class, &mut annotations) {
            members.insert("volume.kubernetes.io/storage-provisioner".into(), driver.into());
        }
        client.merge(
            &path,
            &json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}),
        );
        let status =
            json!({"status": {"phase": "Bound", "accessModes": spec("accessModes"), "capacity": capacity}});
        client.merge(&format!("{path}/status"), &status);
        if class.is_some() && self.events {
            let message = format!("Successfully provisioned volume {volume}");
            client.event(claim, driver, "Normal", "ProvisioningSucceeded", &message);
        }
        self.unbound.remove(key);
        self.volumes.insert(key.clone(), volume);
    }
}

/// What becomes of the volume of a claim that is gone.
pub(super) fn reclaim(client: &mut Client<'_>, volume: &str) {
    let id = ResourceId {
        group: "".into(),
        plural: "persistentvolumes".into(),
    };
    let stored = client.api.store.get(&id, &Key::new("", volume));
    let retained = stored.is_some_and(|stored| {
        at(&stored.value(), "/spec/persistentVolumeReclaimPolicy") == Some(&"Retain".into())
    });
    let path = format!("/api/v1/persistentvolumes/{volume}");
    if retained {
        client.merge(
            &format!("{path}/status"),
            &json!({"status": {"phase": "Released"}}),
        );
    } else {
        client.delete(&path, &json!({}));
    }
}
