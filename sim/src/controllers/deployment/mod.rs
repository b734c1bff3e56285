//! Deployments: a replica set per template, and the way from one to the next.
//!
//! A rolling update stays within `maxSurge` and `maxUnavailable`; `Recreate` empties the old sets first. Old sets
//! beyond the history limit go once they are empty.
//!
//! Not there: adoption, proportional scaling amid an update, progress deadlines, rollback requests.

mod status;

use std::collections::BTreeSet;
use std::sync::Arc;

use go_compat::hash::{fnv1a_32, safe_encode};
use go_compat::{IntOrString, Rounding};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::objects::{controlled, controller, number, reference};
use crate::api::Api;
use crate::object::{at, get_metadata};
use crate::store::Key;
use crate::world::{Actor, Client, Feed};

const USER: &str = "system:serviceaccount:kube-system:deployment-controller";
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Rolls deployments out.
#[derive(Clone, Debug)]
pub(crate) struct Deployments {
    feed: Feed,
    sets: Feed,
    pods: Feed,
    /// Deployments that wait until their old pods are gone, which no set reports.
    emptying: BTreeSet<Key>,
}

/// The replica sets of a deployment: the one of its template, and the others, oldest first.
struct Sets {
    new: Option<(Key, Arc<Value>)>,
    old: Vec<(Key, Arc<Value>)>,
}

impl Deployments {
    pub(crate) fn new() -> Self {
        Self {
            feed: Feed::new("apps", "deployments"),
            sets: Feed::new("apps", "replicasets"),
            pods: Feed::new("", "pods"),
            emptying: BTreeSet::new(),
        }
    }

    fn sync(&mut self, client: &mut Client<'_>, key: &Key) {
        let Some(deployment) = self.feed.object(client.api, key) else {
            return;
        };
        if !get_metadata(&deployment, "deletionTimestamp").is_null() {
            return;
        }
        let sets = Sets::of(client.api, &deployment);
        let paused = at(&deployment, "/spec/paused") == Some(&Value::Bool(true));
        let recreate = at(&deployment, "/spec/strategy/type") == Some(&"Recreate".into());
        if !paused {
            if recreate {
                if recreate_sets(client, key, &deployment, &sets) == Old::Remains {
                    self.emptying.insert(key.clone());
                }
            } else {
                roll(client, key, &deployment, &sets);
            }
            clean(client, &deployment, &sets);
        }
        status::report(client, key, &deployment, &Sets::of(client.api, &deployment));
    }
}

impl Actor for Deployments {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        let mut due: BTreeSet<Key> = self.feed.poll(api);
        for key in self.sets.poll(api) {
            let set = self.sets.object(api, &key);
            let owner = set
                .as_deref()
                .and_then(controller)
                .and_then(|owner| owner.get("name")?.as_str());
            due.extend(owner.map(|owner| Key::new(&key.namespace, owner)));
        }
        if !self.pods.poll(api).is_empty() {
            due.append(&mut self.emptying);
        }
        for key in due {
            self.sync(&mut Client { api, user: USER, now }, &key);
        }
    }

    fn restart(&mut self) {
        self.feed.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        None
    }
}

impl Sets {
    fn of(api: &Api, deployment: &Value) -> Self {
        let wanted = bare(at(deployment, "/spec/template"));
        let all = controlled(api, deployment, "apps", "replicasets");
        let (mut new, mut old): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|(_, set)| bare(at(set, "/spec/template")) == wanted);
        new.sort_by_key(|(key, set)| (revision(set), key.clone()));
        let newest = if new.is_empty() { None } else { Some(new.remove(0)) };
        old.append(&mut new);
        old.sort_by_key(|(key, set)| (revision(set), key.clone()));
        Self { new: newest, old }
    }

    fn sum(&self, pointer: &str) -> i64 {
        self.old
            .iter()
            .chain(&self.new)
            .map(|(_, set)| number(set, pointer))
            .sum()
    }
}

/// A template without the label that differs between sets.
fn bare(template: Option<&Value>) -> Value {
    let mut template = template.cloned().unwrap_or_default();
    if let Some(Value::Object(labels)) = template.pointer_mut("/metadata/labels") {
        labels.remove(HASH);
    }
    template
}

fn revision(set: &Value) -> i64 {
    let text = get_metadata(set, "annotations")
        .get(REVISION)
        .and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_path(key: &Key) -> String {
    format!(
        "/apis/apps/v1/namespaces/{}/replicasets/{}",
        key.namespace, key.name
    )
}

fn scale(client: &mut Client<'_>, set: &(Key, Arc<Value>), replicas: i64) {
    if number(&set.1, "/spec/replicas") != replicas {
        client.merge(&set_path(&set.0), &json!({"spec": {"replicas": replicas}}));
    }
}

/// Makes the set of the deployment's template, or gives an earlier one the newest revision.
fn ensure(client: &mut Client<'_>, key: &Key, deployment: &Value, sets: &Sets, replicas: i64) {
    let newest = sets
        .old
        .iter()
        .map(|(_, set)| revision(set))
        .max()
        .unwrap_or_default();
    if let Some((of, set)) = &sets.new {
        if revision(set) <= newest {
            let annotations = json!({REVISION: (newest + 1).to_string()});
            client.merge(&set_path(of), &json!({"metadata": {"annotations": annotations}}));
        }
        return;
    }
    let mut template = bare(at(deployment, "/spec/template"));
    let hash = safe_encode(&fnv1a_32(template.to_string().as_bytes()).to_string());
    let mut selector = at(deployment, "/spec/selector").cloned().unwrap_or_default();
    for (of, pointer) in [
        (&mut template, "/metadata/labels"),
        (&mut selector, "/matchLabels"),
    ] {
        if let Some(Value::Object(labels)) = of.pointer_mut(pointer) {
            labels.insert(HASH.into(), hash.as_str().into());
        } else if let Value::Object(members) = of {
            members.insert("matchLabels".into(), json!({HASH: hash}));
        }
    }
    let set = json!({
        "metadata": {
            "name": format!("{}-{hash}", key.name), "labels": at(&template, "/metadata/labels"),
            "annotations": {REVISION: (newest + 1).to_string()},
            "ownerReferences": [reference(deployment, "Deployment")],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template,
            "minReadySeconds": number(deployment, "/spec/minReadySeconds")},
    });
    client.post(
        &format!("/apis/apps/v1/namespaces/{}/replicasets", key.namespace),
        &set,
    );
}

/// Whether pods of earlier templates are left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Old {
    Gone,
    Remains,
}

fn recreate_sets(client: &mut Client<'_>, key: &Key, deployment: &Value, sets: &Sets) -> Old {
    sets.old.iter().for_each(|set| scale(client, set, 0));
    let mut pods = sets
        .old
        .iter()
        .flat_map(|(_, set)| controlled(client.api, set, "", "pods"));
    if pods.next().is_some() {
        return Old::Remains;
    }
    drop(pods);
    let wanted = number(deployment, "/spec/replicas");
    ensure(client, key, deployment, sets, wanted);
    if let Some(new) = &sets.new {
        scale(client, new, wanted);
    }
    Old::Gone
}

/// `maxSurge` and `maxUnavailable` in pods. With both zero nothing would move, so one may then be unavailable.
fn bounds(deployment: &Value, wanted: i64) -> (i64, i64) {
    let scaled = |name: &str, rounding: Rounding| {
        let value = deployment.pointer(&format!("/spec/strategy/rollingUpdate/{name}"));
        let value: Option<IntOrString> = value.and_then(|value| serde_json::from_value(value.clone()).ok());
        i64::from(value.map_or(0, |value| {
            value.scaled_b(i32::try_from(wanted).unwrap_or(i32::MAX), rounding)
        }))
    };
    let (surge, unavailable) = (
        scaled("maxSurge", Rounding::Up),
        scaled("maxUnavailable", Rounding::Down),
    );
    if surge == 0 && unavailable == 0 {
        return (0, 1);
    }
    (surge, unavailable.min(wanted))
}

fn roll(client: &mut Client<'_>, key: &Key, deployment: &Value, sets: &Sets) {
    let wanted = number(deployment, "/spec/replicas");
    let (surge, unavailable) = bounds(deployment, wanted);
    let total = sets.sum("/spec/replicas");
    let room = (wanted + surge - total).max(0);
    let Some(new) = &sets.new else {
        return ensure(client, key, deployment, sets, room.min(wanted));
    };
    ensure(client, key, deployment, sets, 0);
    let size = number(&new.1, "/spec/replicas");
    let next = if size > wanted {
        wanted
    } else {
        size + room.min(wanted - size)
    };
    scale(client, new, next);
    if next != size || observed(&new.1) < number(&new.1, "/metadata/generation") {
        return;
    }
    // what may go: first what is not available anyway, then what is beyond the least that must be
    let least = wanted - unavailable;
    let mut spare = total - least - (size - number(&new.1, "/status/availableReplicas"));
    let mut available = sets.sum("/status/availableReplicas") - least;
    for old in &sets.old {
        let replicas = number(&old.1, "/spec/replicas");
        let unhealthy = (replicas - number(&old.1, "/status/availableReplicas")).clamp(0, spare.max(0));
        let healthy = (replicas - unhealthy)
            .min(spare - unhealthy)
            .min(available)
            .max(0);
        scale(client, old, replicas - unhealthy - healthy);
        spare -= unhealthy + healthy;
        available -= healthy;
    }
}

fn observed(set: &Value) -> i64 {
    number(set, "/status/observedGeneration")
}

/// Drops empty sets beyond the history limit, the oldest first.
fn clean(client: &mut Client<'_>, deployment: &Value, sets: &Sets) {
    let empty = |set: &Value| number(set, "/spec/replicas") == 0 && number(set, "/status/replicas") == 0;
    let limit = number(deployment, "/spec/revisionHistoryLimit").max(0) as usize;
    let beyond = sets.old.len().saturating_sub(limit);
    for (key, _) in sets.old.iter().take(beyond).filter(|(_, set)| empty(set)) {
        client.delete(&set_path(key), &json!({"propagationPolicy": "Background"}));
    }
}
