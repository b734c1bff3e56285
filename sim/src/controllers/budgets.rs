//! Disruption budgets are counted: how many pods there should be, how many are healthy, how many may go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::objects::{controller, number};
use crate::api::Api;
use crate::object::{get_metadata, metadata_text, seconds};
use crate::selector::Selector;
use crate::store::{Key, ResourceId};
use crate::validation::text;
use crate::world::{Actor, Client, Feed};

const USER: &str = "system:serviceaccount:kube-system:disruption-controller";

/// How long an eviction counts though its pod is still there.
const GRACE: SignedDuration = SignedDuration::from_mins(2);

/// Counts budgets.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    feed: Feed,
    pods: Feed,
    /// Budgets, and when an eviction that they count expires.
    known: BTreeMap<Key, Option<Timestamp>>,
}

impl Budgets {
    pub(crate) fn new() -> Self {
        Self {
            feed: Feed::new("policy", "poddisruptionbudgets"),
            pods: Feed::new("", "pods"),
            known: BTreeMap::new(),
        }
    }

    /// Budgets that something happened to, or to pods of their namespace.
    fn stale(&mut self, api: &Api, now: Timestamp) -> BTreeSet<Key> {
        let mut stale = self.feed.poll(api);
        stale.extend(
            self.known
                .iter()
                .filter(|(_, due)| due.is_some_and(|due| due <= now))
                .map(|(key, _)| key.clone()),
        );
        // without budgets, pods do not matter
        if !self.known.is_empty() {
            let namespaces: BTreeSet<_> = self.pods.poll(api).into_iter().map(|key| key.namespace).collect();
            stale.extend(
                self.known
                    .keys()
                    .filter(|key| namespaces.contains(&key.namespace))
                    .cloned(),
            );
        }
        stale
    }

    fn sync(&mut self, client: &mut Client<'_>, key: &Key) {
        let Some(budget) = self.feed.object(client.api, key) else {
            self.known.remove(key);
            return;
        };
        let (status, due) = count(client.api, key, &budget, client.now);
        self.known.insert(key.clone(), due);
        let before = budget.get("status").unwrap_or(&Value::Null);
        let changes: Map<String, Value> = status
            .into_iter()
            .filter(|(name, value)| before.get(name).unwrap_or(&Value::Null) != value)
            .collect();
        if !changes.is_empty() {
            let path = format!(
                "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{}/status",
                key.namespace, key.name
            );
            client.merge(&path, &json!({"status": changes}));
        }
    }
}

impl Actor for Budgets {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        for key in self.stale(api, now) {
            self.sync(&mut Client { api, user: USER, now }, &key);
        }
    }

    fn restart(&mut self) {
        self.feed.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        self.known.values().flatten().min().copied()
    }
}

/// The status that a budget should have, and when that changes by itself.
fn count(api: &Api, key: &Key, budget: &Value, now: Timestamp) -> (Map<String, Value>, Option<Timestamp>) {
    let covered = covered(api, key, budget);
    let mut due = None;
    let mut disrupted = Map::new();
    let evicted = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    for (name, time) in evicted.into_iter().flatten() {
        let since: Timestamp = time.as_str().unwrap_or_default().parse().unwrap_or(now);
        let until = since.checked_add(GRACE).unwrap_or(since);
        let is_there = covered
            .iter()
            .any(|pod| metadata_text(pod, "name") == name && !is_leaving(pod));
        if is_there && until > now {
            due = due.min(Some(until)).or(Some(until));
            disrupted.insert(name.clone(), time.clone());
        }
    }
    let is_healthy = |pod: &&Arc<Value>| {
        is_ready(pod) && !is_leaving(pod) && !disrupted.contains_key(metadata_text(pod, "name"))
    };
    let healthy = covered.iter().filter(is_healthy).count() as i64;
    let (expected, desired) = wanted(api, budget, &covered);
    let allowed = if expected > 0 {
        healthy.saturating_sub(desired).max(0)
    } else {
        0
    };
    let generation = get_metadata(budget, "generation").clone();
    let mut status = Map::new();
    for (name, value) in [
        ("currentHealthy", healthy),
        ("desiredHealthy", desired),
        ("disruptionsAllowed", allowed),
        ("expectedPods", expected),
    ] {
        status.insert(name.into(), value.into());
    }
    // a merge patch keeps what it does not remove
    let disrupted: Map<String, Value> = evicted
        .into_iter()
        .flatten()
        .map(|(name, _)| (name.clone(), disrupted.get(name).cloned().unwrap_or_default()))
        .collect();
    if disrupted.values().any(Value::is_null) {
        status.insert("disruptedPods".into(), disrupted.into());
    }
    status.insert(
        "conditions".into(),
        json!([condition(budget, allowed, &generation, now)]),
    );
    status.insert("observedGeneration".into(), generation);
    (status, due)
}

fn covered(api: &Api, key: &Key, budget: &Value) -> Vec<Arc<Value>> {
    let Some(selector) = budget.pointer("/spec/selector").map(Selector::of_object) else {
        return Vec::new();
    };
    let id = ResourceId {
        group: "".into(),
        plural: "pods".into(),
    };
    let pods = api
        .store
        .collection(&id)
        .into_iter()
        .flat_map(|pods| pods.range(&key.namespace, None));
    pods.filter(|(key, stored)| selector.matches(&key.namespace, &key.name, &stored.head))
        .map(|(_, stored)| stored.value())
        .filter(|pod| !matches!(phase(pod), "Succeeded" | "Failed"))
        .collect()
}

fn phase(pod: &Value) -> &str {
    pod.pointer("/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn is_leaving(pod: &Value) -> bool {
    !get_metadata(pod, "deletionTimestamp").is_null()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|one| text(one, "type") == "Ready" && text(one, "status") == "True")
}

/// How many pods there should be, and how many healthy ones at least.
fn wanted(api: &Api, budget: &Value, covered: &[Arc<Value>]) -> (i64, i64) {
    if let Some(least) = budget.pointer("/spec/minAvailable") {
        if let Some(count) = least.as_i64() {
            return (covered.len() as i64, count);
        }
        let expected = replicas(api, covered);
        return (expected, percent(least, expected).unwrap_or(expected));
    }
    let most = budget.pointer("/spec/maxUnavailable").unwrap_or(&Value::Null);
    let expected = replicas(api, covered);
    let away = most
        .as_i64()
        .or_else(|| percent(most, expected))
        .unwrap_or_default();
    (expected, expected.saturating_sub(away).max(0))
}

/// A share in percent, rounded up.
fn percent(value: &Value, of: i64) -> Option<i64> {
    let text = value.as_str().and_then(|text| text.strip_suffix('%'))?;
    let share: i64 = text.parse().ok()?;
    Some(of.saturating_mul(share).saturating_add(99) / 100)
}

/// The replicas in the specifications of the owners of pods; pods without an owner do not count.
fn replicas(api: &Api, pods: &[Arc<Value>]) -> i64 {
    let mut owners: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let namespace = metadata_text(pod, "namespace");
        let mut top = owner(api, namespace, pod);
        if let Some(above) = top.as_ref().and_then(|top| owner(api, namespace, top)) {
            top = Some(above);
        }
        if let Some(top) = top {
            owners.insert(
                metadata_text(&top, "uid").to_owned(),
                number(&top, "/spec/replicas"),
            );
        }
    }
    // a custom resource may have any number; a budget's status has room for this one
    let sum = owners
        .values()
        .fold(0, |sum: i64, replicas| sum.saturating_add(*replicas));
    sum.min(i32::MAX.into())
}

/// The controller of an object, if it is there.
fn owner(api: &Api, namespace: &str, object: &Value) -> Option<Arc<Value>> {
    let reference = controller(object)?;
    let (version, kind) = (text(reference, "apiVersion"), text(reference, "kind"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let resource = api
        .registry
        .all()
        .find(|one| one.id.group.as_ref() == group && one.kind.as_ref() == kind)?;
    let stored = api
        .store
        .get(&resource.id, &Key::new(namespace, text(reference, "name")))?;
    let found = stored.value();
    (metadata_text(&found, "uid") == text(reference, "uid")).then_some(found)
}

fn condition(budget: &Value, allowed: i64, generation: &Value, now: Timestamp) -> Value {
    let (status, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let before = budget.pointer("/status/conditions/0").unwrap_or(&Value::Null);
    let since = if text(before, "status") == status {
        text(before, "lastTransitionTime").to_owned()
    } else {
        seconds(now)
    };
    json!({"type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
        "observedGeneration": generation, "lastTransitionTime": since})
}
