//! Claims get volumes: each its own, as a provisioner makes them.
//!
//! In a cluster without storage classes every claim is bound at once. With classes, a claim is bound as its class says
//! ([`provision`]), and grows if its class allows it ([`expand`]). A volume is deleted with its claim, unless its class
//! retains it. A deleted claim stays for as long as a pod uses it.
//!
//! Not there: volumes that users make, classes in annotations, topology, ephemeral volumes, attribute classes.

mod expand;
mod provision;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{at, finalizers, get_metadata, metadata_text};
use crate::store::{Head, Key};
use crate::world::{Actor, Client, Feed, Timers};

const USER: &str = "system:serviceaccount:kube-system:persistent-volume-binder";

/// What admission puts on claims.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// Binds claims.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    feed: Feed,
    pods: Feed,
    classes: Feed,
    /// Volumes made here, by claim.
    volumes: BTreeMap<Key, String>,
    /// Pods, and the claims that they use.
    users: BTreeMap<Key, User>,
    /// Deleted claims that are in use.
    leaving: BTreeSet<Key>,
    /// Claims that have no volume, and the reason that was recorded.
    unbound: BTreeMap<Key, &'static str>,
    /// Claims whose file system is to grow, and the uids of the pods that had it mounted when their volume grew.
    growing: BTreeMap<Key, BTreeSet<String>>,
    /// When a volume is made, or grows.
    timers: Timers<Key>,
    /// Whether it records what it makes.
    events: bool,
}

/// A pod that uses claims.
#[derive(Clone, Debug, Default)]
struct User {
    uid: String,
    /// Whether it has a node, which mounts the volumes.
    placed: bool,
    claims: BTreeSet<Key>,
}

/// Whether what a claim waited for took its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    Runs,
    IsOver,
}

impl Claims {
    pub(crate) fn new(events: bool) -> Self {
        Self {
            feed: Feed::new("", "persistentvolumeclaims"),
            pods: Feed::new("", "pods"),
            classes: Feed::new("storage.k8s.io", "storageclasses"),
            volumes: BTreeMap::new(),
            users: BTreeMap::new(),
            leaving: BTreeSet::new(),
            unbound: BTreeMap::new(),
            growing: BTreeMap::new(),
            timers: Timers::new(),
            events,
        }
    }

    /// Notes which claims a pod uses; those of a pod that is gone may be free.
    fn pod(&mut self, api: &Api, key: &Key) {
        let head = self.pods.head(api, key);
        let placed = head
            .and_then(|head| self.pods.field(api, head, "spec.nodeName"))
            .is_some_and(|node| !node.is_empty());
        let is_known = |head: &Head| {
            let known = self.users.get(key);
            known.is_some_and(|user| user.uid == head.uid.as_ref() && user.placed == placed)
        };
        if head.is_some_and(is_known) {
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
            self.users.insert(key.clone(), User { uid, placed, claims });
        }
    }

    /// Lets deleted claims go that no pod uses. One without a node does not: its node would not start it with such
    /// a claim.
    fn release(&mut self, client: &mut Client<'_>) {
        if self.leaving.is_empty() {
            return;
        }
        let placed = self.users.values().filter(|user| user.placed);
        let used: BTreeSet<&Key> = placed.flat_map(|user| &user.claims).collect();
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

    fn sync(&mut self, client: &mut Client<'_>, key: &Key, time: Time) {
        let claim = self.feed.object(client.api, key);
        let volume = claim
            .as_ref()
            .map(|claim| format!("pvc-{}", metadata_text(claim, "uid")));
        if let Some(old) = self.volumes.get(key).filter(|old| Some(*old) != volume.as_ref()) {
            provision::reclaim(client, old);
            self.volumes.remove(key);
            self.growing.remove(key);
            self.timers.set(key.clone(), None);
        }
        let (Some(claim), Some(volume)) = (claim, volume) else {
            self.leaving.remove(key);
            self.unbound.remove(key);
            self.timers.set(key.clone(), None);
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
            self.provision(client, key, &claim, volume, time);
        } else if bound && self.volumes.contains_key(key) {
            self.expand(client, key, &claim, time);
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
        for key in self.pods.poll(api) {
            self.pod(api, &key);
        }
        let mut changed = self.feed.poll(api);
        changed.extend(self.growing.keys().cloned());
        if !self.classes.poll(api).is_empty() {
            changed.extend(self.unbound.keys().cloned());
        }
        let mut client = Client { api, user: USER, now };
        for key in changed {
            self.sync(&mut client, &key, Time::Runs);
        }
        while let Some(key) = self.timers.pop(now) {
            self.sync(&mut client, &key, Time::IsOver);
        }
        self.release(&mut client);
    }

    fn restart(&mut self) {
        self.feed.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        self.timers.next()
    }
}

fn path(claim: &Key) -> String {
    format!(
        "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
        claim.namespace, claim.name
    )
}
