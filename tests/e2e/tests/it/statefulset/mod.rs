//! StatefulSets: ordinals, order, claims, updates and hooks.

mod claims;
mod crash;
mod creation;
mod hooks;
mod ownership;
mod requests;
mod resize;
mod rollout;
mod scaling;
mod slots;
mod visible;

use std::collections::BTreeMap;

use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, text};

/// As kubectl has to name them: `statefulsets` alone are those of the group `apps`.
const SETS: &str = "statefulsets.v1beta1.apps.kruise.io";
const CLAIMS: &str = "persistentvolumeclaims";

/// Objects by name.
type ByName = BTreeMap<String, Value>;

/// An ordered StatefulSet `db` that updates in place. Its pods have no claims.
fn db(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {
                    "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                    "containers": [container("nginx:1", "b")],
                },
            },
        },
    })
}

/// As [`db`], without an order.
fn parallel(replicas: u32) -> Value {
    let mut set = db(replicas);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set
}

/// The set with a claim `data` of 1Gi for each pod, from this storage class.
fn with_claims(mut set: Value, class: &str) -> Value {
    set["spec"]["volumeClaimTemplates"] = claim_templates(class, "1Gi");
    set
}

fn claim_templates(class: &str, size: &str) -> Value {
    json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
                 "resources": {"requests": {"storage": size}}},
    }])
}

fn container(image: &str, variable: &str) -> Value {
    json!({"name": "main", "image": image, "env": [{"name": "A", "value": variable}]})
}

/// A patch of the container's image and variable.
fn template(image: &str, variable: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [container(image, variable)]}}}})
}

/// A patch of fields of `updateStrategy.rollingUpdate`.
fn rolling(fields: &Value) -> Value {
    json!({"spec": {"updateStrategy": {"rollingUpdate": fields}}})
}

/// As [`template`], with fields of `updateStrategy.rollingUpdate`.
fn rollout(image: &str, variable: &str, fields: &Value) -> Value {
    let mut patch = template(image, variable);
    patch["spec"]["updateStrategy"] = json!({"rollingUpdate": fields});
    patch
}

/// Changes the set `db`.
fn patch(scenario: &Scenario, patch: &Value) {
    scenario.kubectl.patch(SETS, "db", patch).unwrap();
}

fn set(scenario: &Scenario) -> Value {
    scenario.kubectl.get(SETS, "db").unwrap()
}

/// Waits until the status of `db` is up to date and its `fields` have these values.
fn until_status(scenario: &Scenario, fields: &Value) {
    wait::until_true(&format!("status of db has {fields}"), LIMIT, || {
        let set = scenario.kubectl.get(SETS, "db")?;
        let current = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        let mut wanted = fields.as_object().unwrap().iter();
        Ok(current && wanted.all(|(key, value)| set["status"][key] == *value))
    })
    .unwrap();
}

/// Deletes a pod of `db`. Its successor has its name, so kubectl must not wait until nothing has that name.
fn delete_pod(scenario: &Scenario, name: &str) {
    let delete = ["delete", "pod", name, "--wait=false"];
    scenario.kubectl.run(&delete).unwrap();
}

/// Waits until so many pods are there, and all are ready and updated.
fn until_updated(scenario: &Scenario, replicas: usize) {
    until_status(
        scenario,
        &json!({"replicas": replicas, "readyReplicas": replicas, "updatedReadyReplicas": replicas}),
    );
}

/// Waits until all objects of `app=db` of a resource, those that are being deleted included, are so.
fn until(scenario: &Scenario, resource: &str, what: &str, test: impl Fn(&ByName) -> bool) -> ByName {
    wait::until(what, LIMIT, || {
        let objects = by_name(scenario.kubectl.list(resource, "app=db")?);
        Ok(test(&objects).then_some(objects))
    })
    .unwrap()
}

fn pods(scenario: &Scenario) -> ByName {
    by_name(scenario.kubectl.list("pods", "app=db").unwrap())
}

fn claims(scenario: &Scenario) -> ByName {
    by_name(scenario.kubectl.list(CLAIMS, "app=db").unwrap())
}

fn by_name(objects: Vec<Value>) -> ByName {
    objects
        .into_iter()
        .map(|object| (name(&object), object))
        .collect()
}

fn names(objects: &ByName) -> Vec<&str> {
    objects.keys().map(String::as_str).collect()
}

fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

fn uid(object: &Value) -> String {
    text(object, "/metadata/uid")
}

/// The uid of each, by name.
fn uids(objects: &ByName) -> BTreeMap<String, String> {
    let uids = objects.iter().map(|(name, object)| (name.clone(), uid(object)));
    uids.collect()
}

fn image(pod: &Value) -> String {
    text(pod, "/spec/containers/0/image")
}

/// The state of its lifecycle.
fn state(pod: &Value) -> String {
    text(pod, "/metadata/labels/lifecycle.apps.kruise.io~1state")
}

fn revision(pod: &Value) -> String {
    text(pod, "/metadata/labels/controller-revision-hash")
}

fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// A condition of an object, null if it has none of this type.
fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut of_kind = conditions.filter(|condition| condition["type"] == kind);
    of_kind.next().unwrap_or(&Value::Null)
}

/// Is the pod ready and not being deleted?
fn in_service(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "True" && !is_terminating(pod)
}

fn all_in_service(pods: &ByName) -> bool {
    pods.values().all(in_service)
}

/// Ends a watch once what it has shown leads to objects that are so: it may lag behind. Returns its events.
fn ended(watch: Watch, what: &str, test: impl Fn(&ByName) -> bool) -> Vec<Value> {
    wait::until_true(&format!("the watch shows {what}"), LIMIT, || {
        let mut last = ByName::new();
        at_every_moment(&watch.shown(), |objects, _| last.clone_from(objects));
        Ok(test(&last))
    })
    .unwrap();
    watch.stop().unwrap()
}

/// Calls `check` after every event with the objects that there are then, and with the one that the event is about.
fn at_every_moment(events: &[Value], mut check: impl FnMut(&ByName, &Value)) {
    let mut objects = ByName::new();
    for event in events {
        let object = &event["object"];
        if event["type"] == "DELETED" {
            objects.remove(&name(object));
        } else {
            objects.insert(name(object), object.clone());
        }
        check(&objects, object);
    }
}

/// The most of `replicas` pods that were out of service at any moment after all were in service.
fn most_unavailable(events: &[Value], replicas: usize) -> usize {
    let (mut begun, mut most) = (false, 0);
    at_every_moment(events, |pods, _| {
        let available = pods.values().filter(|pod| in_service(pod)).count();
        begun |= available == replicas;
        if begun {
            most = most.max(replicas.saturating_sub(available));
        }
    });
    assert!(begun, "never were all pods in service");
    most
}

/// A watch of the pods of `db`, of which there are so many.
fn watch_pods(scenario: &Scenario, count: usize) -> Watch {
    let watch = Watch::start(&scenario.kubectl, "pods", "app=db").unwrap();
    watch.until_shown(count, LIMIT).unwrap();
    watch
}
