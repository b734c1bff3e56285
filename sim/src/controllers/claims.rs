//! Claims get volumes: each its own, as a provisioner makes them, bound at once whatever the storage class.
//!
//! A volume is deleted with its claim. A deleted claim stays for as long as a pod uses it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{at, finalizers, get_metadata, metadata_text};
use crate::store::Key;
use crate::world::{Actor, Client, Feed};

const USER: &str = "system:serviceaccount:kube-system:persistent-volume-binder";

/// What admission puts on claims.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// Binds claims.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    feed: Feed,
    pods: Feed,
    /// Volumes made here, by claim.
    volumes: BTreeMap<Key, String>,
    /// Pods that use claims: their uid, and the claims.
    users: BTreeMap<Key, (String, BTreeSet<Key>)>,
    /// Deleted claims that are in use.
    leaving: BTreeSet<Key>,
}

impl Claims {
    pub(crate) fn new() -> Self {
        Self {
            feed: Feed::new("", "persistentvolumeclaims"),
            pods: Feed::new("", "pods"),
            volumes: BTreeMap::new(),
            users: BTreeMap::new(),
            leaving: BTreeSet::new(),
        }
    }

    /// Notes which claims a pod uses; those of a pod that is gone may be free.
    fn pod(&mut self, api: &Api, key: &Key) {
        let head = self.pods.head(api, key);
        let known = self.users.get(key).map(|(uid, _)| uid.as_str());
        if head.is_some() && known == head.map(|head| head.uid.as_ref()) {
            return;
        }
        self.users.remove(key);
        if let Some(pod) = self.pods.object(api, key) {
            let volumes = at(&pod, "/spec/volumes").and_then(Value::as_array);
            let names = volumes
                .into_iter()
                .flatten()
                .filter_map(|volume| at(volume, "/persistentVolumeClaim/claimName")?.as_str());
            let claims = names.map(|name| Key::new(&key.namespace, name)).collect();
            let uid = metadata_text(&pod, "uid").to_owned();
            self.users.insert(key.clone(), (uid, claims));
        }
    }

    /// Lets deleted claims go that no pod uses.
    fn release(&mut self, client: &mut Client<'_>) {
        if self.leaving.is_empty() {
            return;
        }
        let used: BTreeSet<&Key> = self.users.values().flat_map(|(_, claims)| claims).collect();
        for key in self.leaving.iter().filter(|key| !used.contains(key)) {
            let Some(claim) = self.feed.object(client.api, key) else {
                continue;
            };
            let kept: Vec<&str> = finalizers(&claim)
                .into_iter()
                .filter(|one| *one != PROTECTION)
                .collect();
            client.merge(&path(key), &json!({"metadata": {"finalizers": kept}}));
        }
        self.leaving.retain(|key| used.contains(key));
    }

    fn sync(&mut self, client: &mut Client<'_>, key: &Key) {
        let claim = self.feed.object(client.api, key);
        let volume = claim
            .as_ref()
            .map(|claim| format!("pvc-{}", metadata_text(claim, "uid")));
        if let Some(old) = self.volumes.get(key).filter(|old| Some(*old) != volume.as_ref()) {
            client.delete(&format!("/api/v1/persistentvolumes/{old}"), &json!({}));
            self.volumes.remove(key);
        }
        let (Some(claim), Some(volume)) = (claim, volume) else {
            self.leaving.remove(key);
            return;
        };
        let deleted = !get_metadata(&claim, "deletionTimestamp").is_null();
        if deleted && finalizers(&claim).contains(&PROTECTION) {
            self.leaving.insert(key.clone());
        }
        let named = at(&claim, "/spec/volumeName").and_then(Value::as_str);
        if named == Some(volume.as_str()) {
            self.volumes.insert(key.clone(), volume.clone());
        }
        let bound = at(&claim, "/status/phase") == Some(&"Bound".into());
        if named.is_none() && !bound && !deleted {
            bind(client, key, &claim, &volume);
            self.volumes.insert(key.clone(), volume);
        }
    }
}

impl Actor for Claims {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        for key in self.feed.poll(api) {
            self.sync(&mut Client { api, user: USER, now }, &key);
        }
        for key in self.pods.poll(api) {
            self.pod(api, &key);
        }
        self.release(&mut Client { api, user: USER, now });
    }

    fn restart(&mut self) {
        self.feed.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        None
    }
}

fn path(claim: &Key) -> String {
    format!(
        "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
        claim.namespace, claim.name
    )
}

fn bind(client: &mut Client<'_>, key: &Key, claim: &Value, volume: &str) {
    let spec = |name: &str| {
        claim
            .pointer(&format!("/spec/{name}"))
            .cloned()
            .unwrap_or_default()
    };
    let capacity = json!({"storage": spec("resources").pointer("/requests/storage")});
    let mut object = json!({
        "metadata": {"name": volume, "annotations": {"pv.kubernetes.io/provisioned-by": "simulated"}},
        "spec": {
            "capacity": capacity, "accessModes": spec("accessModes"), "persistentVolumeReclaimPolicy": "Delete",
            "volumeMode": spec("volumeMode"), "storageClassName": spec("storageClassName"),
            "csi": {"driver": "simulated", "volumeHandle": volume},
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
    let annotations =
        json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
    client.merge(
        &path,
        &json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}),
    );
    let status =
        json!({"status": {"phase": "Bound", "accessModes": spec("accessModes"), "capacity": capacity}});
    client.merge(&format!("{path}/status"), &status);
}
