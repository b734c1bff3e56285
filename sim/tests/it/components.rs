//! Webhooks on what the cluster's own components write.

use std::time::Duration;

use jiff::Timestamp;
use kruise_sim::{Config, Method, Options, Outcome, Request, WebhookCall, WebhookReply, World};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

fn world() -> World {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let config = Config {
        seed: 7,
        ..Config::default()
    };
    World::new(&config, &Options::default(), start).unwrap()
}

fn send(world: &mut World, method: Method, path: &str, body: Option<&Value>) -> Value {
    let response = world
        .handle(&Request::new(method, path, body))
        .response()
        .unwrap();
    assert!(response.code < 300, "{path}: {}", response.value());
    response.value()
}

/// Registers a webhook for pods.
fn register(world: &mut World, kind: &str, operation: &str) {
    let webhook = json!({"name": "pods.example.com", "clientConfig": {"url": "https://localhost/x"},
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [{"operations": [operation],
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]});
    let body = json!({"metadata": {"name": kind}, "webhooks": [webhook]});
    let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
    send(world, Method::Post, &path, Some(&body));
}

fn replica_set(world: &mut World, replicas: i64) {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    send(world, Method::Post, SETS, Some(&set));
}

fn answer(call: &WebhookCall, mut response: Value) -> WebhookReply {
    response["uid"] = call.review["request"]["uid"].clone();
    WebhookReply::Review(
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}),
    )
}

fn allow(call: &WebhookCall) -> WebhookReply {
    // [{"op":"add","path":"/metadata/labels/seen","value":"1"}]
    let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9zZWVuIiwidmFsdWUiOiIxIn1d";
    answer(
        call,
        json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}),
    )
}

/// Plays for a while; calls are answered at once. Returns the users that were asked about.
fn play(world: &mut World, time: Duration, answer: impl Fn(&WebhookCall) -> WebhookReply) -> Vec<String> {
    let end = world.now().checked_add(time).unwrap();
    let mut users = Vec::new();
    loop {
        let due = world.next_due().filter(|due| *due <= end);
        world.advance(due.unwrap_or(end));
        let calls = world.calls();
        if calls.is_empty() && due.is_none() {
            return users;
        }
        for call in calls {
            let user = call.review["request"]["userInfo"]["username"].as_str().unwrap();
            users.push(user.to_owned());
            assert_eq!(
                world.resume(call.id, answer(&call)),
                None,
                "no other request waits"
            );
        }
    }
}

fn pods(world: &mut World) -> Vec<Value> {
    let list = send(world, Method::Get, PODS, None);
    list["items"].as_array().unwrap().clone()
}

#[test]
fn a_component_continues_when_its_webhook_has_answered() {
    let mut world = world();
    register(&mut world, "mutating", "CREATE");
    replica_set(&mut world, 3);
    let now = world.now();
    world.advance(now);
    let first = world.calls();
    assert_eq!(first.len(), 1, "one request after the other");
    assert_eq!(pods(&mut world), Vec::<Value>::new());
    // news for the component, which must not begin anew while it waits
    let labels = json!({"metadata": {"labels": {"news": "1"}}});
    let patch = Request::new(Method::Patch, &format!("{SETS}/web"), Some(&labels));
    world.handle(&patch.content_type("application/merge-patch+json"));
    world.advance(now);
    assert_eq!(world.calls(), []);
    assert_eq!(world.resume(first[0].id, allow(&first[0])), None);
    let users = play(&mut world, Duration::ZERO, allow);
    assert_eq!(
        users,
        ["system:serviceaccount:kube-system:replicaset-controller"; 2]
    );
    let pods = pods(&mut world);
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod["metadata"]["labels"]["seen"] == "1"));
    assert_eq!(world.next_due(), None, "all is done");
}

#[test]
fn equal_answers_make_equal_worlds() {
    let run = || {
        let mut world = world();
        register(&mut world, "mutating", "CREATE");
        send(
            &mut world,
            Method::Post,
            "/api/v1/nodes",
            Some(&json!({"metadata": {"name": "n1"}})),
        );
        replica_set(&mut world, 3);
        play(&mut world, Duration::from_secs(30), allow);
        let list = pods(&mut world);
        let running = list.iter().filter(|pod| pod["status"]["phase"] == "Running");
        assert_eq!(running.count(), 3);
        json!(list).to_string()
    };
    assert_eq!(run(), run());
}

#[test]
fn the_background_calls_webhooks_and_obeys() {
    let mut world = world();
    let maps = "/api/v1/namespaces/default/configmaps";
    let owner = send(
        &mut world,
        Method::Post,
        maps,
        Some(&json!({"metadata": {"name": "owner"}})),
    );
    for name in ["a", "b"] {
        let pod = json!({"metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap",
            "name": "owner", "uid": owner["metadata"]["uid"]}]}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        send(&mut world, Method::Post, PODS, Some(&pod));
    }
    register(&mut world, "validating", "DELETE");
    send(&mut world, Method::Delete, &format!("{maps}/owner"), None);
    let refuse_a = |call: &WebhookCall| {
        let allowed = call.review["request"]["name"] != "a";
        answer(call, json!({"allowed": allowed}))
    };
    let users = play(&mut world, Duration::from_secs(1), refuse_a);
    assert!(users.len() >= 2, "{users:?}");
    assert!(
        users
            .iter()
            .all(|user| user.ends_with("generic-garbage-collector"))
    );
    let left = pods(&mut world);
    let names: Vec<&Value> = left.iter().map(|pod| &pod["metadata"]["name"]).collect();
    assert_eq!(names, ["a"]);
}

#[test]
fn a_clients_request_is_answered_to_the_client() {
    let mut world = world();
    register(&mut world, "mutating", "CREATE");
    let pod = json!({"metadata": {"name": "a", "labels": {"own": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let Outcome::Call(call) = world.handle(&Request::new(Method::Post, PODS, Some(&pod))) else {
        panic!("no call");
    };
    assert_eq!(world.calls(), [], "it is the client's to make");
    let outcome = world.resume(call.id, allow(&call)).unwrap();
    assert_eq!(outcome.response().unwrap().code, 201);
}

#[test]
fn a_component_tries_again_when_its_webhook_was_not_there() {
    let mut world = world();
    register(&mut world, "mutating", "CREATE");
    replica_set(&mut world, 2);
    let absent = |_: &WebhookCall| WebhookReply::Failed("connection refused".into());
    let asked = play(&mut world, Duration::from_millis(10_500), absent).len();
    assert_eq!(
        asked,
        2 * 5,
        "twice at once, the status being news, and after 1, 3 and 7 seconds"
    );
    assert_eq!(pods(&mut world), Vec::<Value>::new());
    play(&mut world, Duration::from_secs(10), allow);
    assert_eq!(pods(&mut world).len(), 2);
    assert_eq!(world.next_due(), None);
}

#[test]
fn components_that_begin_anew_do_not_wait_for_the_calls_of_the_old() {
    let mut world = world();
    register(&mut world, "mutating", "CREATE");
    replica_set(&mut world, 2);
    let now = world.now();
    world.advance(now);
    let [lost] = world.calls().try_into().unwrap();
    let mut world = World::over(world.into_api(), &Options::default(), 7, now).unwrap();
    play(&mut world, Duration::from_secs(1), allow);
    assert_eq!(pods(&mut world).len(), 2);
    let late = world.resume(lost.id, allow(&lost)).unwrap().response().unwrap();
    assert_eq!(late.code, 500, "no request waits for it");
    play(&mut world, Duration::from_secs(1), allow);
    assert_eq!(pods(&mut world).len(), 2);
}
