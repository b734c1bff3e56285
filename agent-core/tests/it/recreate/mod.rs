//! Scenarios of ContainerRecreateRequests. Kubelet and manager are played by the tests.

mod ended;
mod faults;

use jiff::Timestamp;
use kruise_agent_core::{About, Config, Effect, Failure, Handler, RuntimeContainer};
use serde_json::{Value, json};

use crate::world::{START, World, millis, seconds, time};

/// The message of a container that was stopped.
const WAITING: &str = "Waiting for the new container to be ready";

fn container(name: &str, id: &str, started: Timestamp) -> RuntimeContainer {
    let started = i64::try_from(started.as_nanosecond()).unwrap();
    RuntimeContainer {
        id: id.into(),
        name: name.into(),
        created: started,
        started: Some(started),
        is_running: true,
        exit_code: None,
        annotations: [("io.kubernetes.container.restartCount", "2")]
            .into_iter()
            .collect(),
    }
}

/// A pod without an owner, with the containers `app`, `log` and `web`; `hook` is that of `app`.
fn pod(hook: &Value) -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web"},
        "spec": {"containers": [
            {"name": "app", "lifecycle": {"preStop": hook}, "ports": [{"name": "admin", "containerPort": 9}]},
            {"name": "log"}, {"name": "web"}]},
        "status": {"podIP": "10.0.0.7"},
    })
}

/// A node that runs the pod.
fn world() -> World {
    with_hook(&Value::Null)
}

fn with_hook(hook: &Value) -> World {
    let mut world = World::new(Config::new("n1"));
    world.is_kubelet_away = true;
    world.put_pod("web", &pod(hook));
    let before = time("2026-01-01T00:00:00Z");
    let containers = ["app", "log", "web"].map(|name| container(name, name, before));
    world.containers.insert("uid-web".into(), containers.into());
    world.run(millis(100));
    world
}

/// A request as the webhook of the manager completes it.
fn request(world: &World, containers: &[&str], strategy: &Value) -> Value {
    let containers = containers.iter().map(|name| {
        json!({"name": name,
            "statusContext": {"containerID": format!("containerd://{name}"), "restartCount": 2}})
    });
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "metadata": {"creationTimestamp": world.now.to_string(), "labels": {
            "crr.apps.kruise.io/active": "true", "crr.apps.kruise.io/node-name": "n1",
            "crr.apps.kruise.io/pod-uid": "uid-web"}},
        "spec": {"podName": "web", "containers": containers.collect::<Vec<_>>(), "strategy": strategy},
    })
}

fn ask(world: &mut World, name: &str, containers: &[&str], strategy: &Value) {
    let request = request(world, containers, strategy);
    world.put_request(name, &request);
}

/// The kubelet starts the successor of a container.
fn start(world: &mut World, name: &str) {
    let now = world.now;
    let containers = world.containers.get_mut("uid-web").unwrap();
    let before = containers.iter().rfind(|one| &*one.name == name).unwrap();
    let successor = container(name, &format!("{}+", before.id), now);
    containers.push(successor);
}

/// The newest container of a name.
fn newest<'a>(world: &'a World, name: &str) -> &'a RuntimeContainer {
    let mut all = world.containers["uid-web"].iter();
    all.rfind(|one| &*one.name == name).unwrap()
}

/// The manager reports the containers that have started since the request was created, and that these are ready.
fn report(world: &mut World, request: &str, ready: &[&str]) {
    let created = time(
        world.requests[request]["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap(),
    );
    let created = i64::try_from(created.as_nanosecond()).unwrap();
    let entry = |name: &str| {
        let newest = newest(world, name);
        let is_new = newest.is_running && newest.started >= Some(created);
        is_new.then(|| {
            json!({"name": name, "ready": ready.contains(&name), "restartCount": 3,
                "containerID": format!("containerd://{}", newest.id)})
        })
    };
    let snapshot: Vec<Value> = ["app", "log", "web"].into_iter().filter_map(entry).collect();
    world.put_request(request, &json!({"status": {"containerStatusSnapshot": snapshot}}));
}

/// The successor of a container runs and is ready.
fn replace(world: &mut World, request: &str, name: &str) {
    start(world, name);
    report(world, request, &[name]);
}

/// The containers that were stopped, when and with which grace.
fn stops(world: &World) -> Vec<(f64, String, u64)> {
    let start = time(START);
    let stops = world.trace.iter().filter_map(|(time, effect)| match effect {
        Effect::StopContainer { container, grace } => Some((
            time.duration_since(start).as_secs_f64(),
            container.id.to_string(),
            grace.as_secs(),
        )),
        _ => None,
    });
    stops.collect()
}

fn stopped(world: &World) -> Vec<String> {
    stops(world).into_iter().map(|(_, id, _)| id).collect()
}

fn hooks(world: &World) -> Vec<Handler> {
    let hooks = world.trace.iter().filter_map(|(_, effect)| match effect {
        Effect::RunPreStop { hook, .. } => Some(hook.clone()),
        _ => None,
    });
    hooks.collect()
}

fn status<'a>(world: &'a World, request: &str) -> &'a Value {
    &world.requests[request]["status"]
}

fn phase(world: &World, request: &str) -> String {
    status(world, request)["phase"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Phase, message and `isKilled` of a container.
fn state(world: &World, request: &str, name: &str) -> (String, String, bool) {
    let states = status(world, request)["containerRecreateStates"].as_array();
    let mut states = states.into_iter().flatten();
    let state = states
        .find(|state| state["name"] == name)
        .cloned()
        .unwrap_or_default();
    let text = |key: &str| state[key].as_str().unwrap_or_default().to_owned();
    (text("phase"), text("message"), state["isKilled"] == true)
}

fn is(phase: &str, message: &str, is_killed: bool) -> (String, String, bool) {
    (phase.to_owned(), message.to_owned(), is_killed)
}

fn writes(world: &World) -> usize {
    world.count(|effect| matches!(effect, Effect::PatchRequestStatus { .. }))
}

#[test]
fn s4_8_1_a_container_is_replaced_and_three_writes_report_it() {
    let mut world = world();
    ask(
        &mut world,
        "r",
        &["app"],
        &json!({"terminationGracePeriodSeconds": 7}),
    );
    world.run(millis(100));
    assert_eq!((stopped(&world), stops(&world)[0].2), (vec!["app".to_owned()], 7));
    assert_eq!(phase(&world, "r"), "Recreating");
    let stopping = "Stopping container containerd://app";
    assert_eq!(state(&world, "r", "app"), is("Recreating", stopping, false));
    world.run(millis(200));
    assert_eq!(state(&world, "r", "app"), is("Recreating", WAITING, true));
    start(&mut world, "app");
    report(&mut world, "r", &[]);
    world.run(seconds(1));
    assert_eq!((writes(&world), phase(&world, "r")), (2, "Recreating".to_owned()));
    report(&mut world, "r", &["app"]);
    world.run(seconds(1));
    assert_eq!(state(&world, "r", "app"), is("Succeeded", "", true));
    assert_eq!((writes(&world), phase(&world, "r")), (3, "Completed".to_owned()));
    assert!(status(&world, "r")["completionTime"].is_string());
    assert_eq!(status(&world, "r").get("message"), None);
    world.run(seconds(1000));
    assert_eq!((writes(&world), world.agent.next_timer()), (3, None));
    let events = world.events();
    assert_eq!(
        world.messages(),
        ["Killing Stopping container app by ContainerRecreateRequest r"]
    );
    assert_eq!(events[0].component, "kruise-daemon-crr");
    let about = &events[0].about;
    assert!(matches!(about, About::Container { pod, container, uid, .. }
        if (&**pod, &**container, &**uid) == ("web", "app", "uid-web")));
}

#[test]
fn s4_8_2_without_an_order_each_is_stopped_after_the_one_before_it_and_none_waits_for_readiness() {
    let mut world = with_hook(&json!({"exec": {"command": ["bye"]}}));
    world.stopping = seconds(2);
    ask(&mut world, "r", &["app", "log", "web"], &json!({}));
    world.run(millis(100));
    assert_eq!(
        (hooks(&world).len(), stops(&world)),
        (1, Vec::new()),
        "the hook of app runs"
    );
    assert_eq!(state(&world, "r", "log"), is("Pending", "", false));
    world.run(seconds(20));
    let stops = stops(&world);
    let order: Vec<&str> = stops.iter().map(|(_, id, _)| &**id).collect();
    assert_eq!(order, ["app", "log", "web"]);
    let gaps: Vec<f64> = stops.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(
        gaps.iter().all(|gap| (2.0..3.0).contains(gap)),
        "each after the end of the last: {gaps:?}"
    );
    assert_eq!(
        state(&world, "r", "app"),
        is("Recreating", WAITING, true),
        "nothing was ready"
    );
    assert_eq!(
        writes(&world),
        4,
        "what is stopped next is stored with the end of the last"
    );
    for name in ["app", "log", "web"] {
        start(&mut world, name);
    }
    report(&mut world, "r", &["app", "log", "web"]);
    world.run(seconds(1));
    assert_eq!(phase(&world, "r"), "Completed");
}

#[test]
fn stops_of_an_agent_before_that_stopped_side_by_side_go_on_one_after_the_other() {
    let mut world = world();
    world.stopping = seconds(2);
    let mut request = request(&world, &["app", "log"], &json!({}));
    let begun = ["app", "log"].map(|name| {
        json!({"name": name, "phase": "Recreating", "message": format!("Stopping container containerd://{name}")})
    });
    request["status"] = json!({"phase": "Recreating", "containerRecreateStates": begun});
    world.put_request("r", &request);
    world.run(seconds(1));
    assert_eq!(stopped(&world), ["app"]);
    world.run(seconds(5));
    assert_eq!(stopped(&world), ["app", "log"]);
}

#[test]
fn s4_8_2_in_order_the_next_one_is_stopped_after_the_one_before_it_has_succeeded() {
    let mut world = world();
    ask(
        &mut world,
        "r",
        &["log", "app"],
        &json!({"orderedRecreate": true}),
    );
    world.run(seconds(5));
    assert_eq!(stopped(&world), ["log"]);
    assert_eq!(state(&world, "r", "app"), is("Pending", "", false));
    start(&mut world, "log");
    report(&mut world, "r", &[]);
    world.run(seconds(60));
    assert_eq!(stopped(&world), ["log"], "it is not ready");
    report(&mut world, "r", &["log"]);
    world.run(seconds(1));
    assert_eq!(stopped(&world), ["log", "app"]);
    assert_eq!(state(&world, "r", "log").0, "Succeeded");
    start(&mut world, "app");
    report(&mut world, "r", &["app", "log"]);
    world.run(seconds(1));
    assert_eq!(phase(&world, "r"), "Completed");
}

#[test]
fn s4_8_3_a_new_container_counts_once_it_has_run_for_long_enough() {
    let mut world = world();
    ask(&mut world, "r", &["app"], &json!({"minStartedSeconds": 10}));
    world.run(seconds(3));
    replace(&mut world, "r", "app");
    let started = world.now;
    world.run(millis(9_900));
    assert_eq!(phase(&world, "r"), "Recreating");
    let message = "Waiting for the new container to be ready and to have run for 10 s";
    assert_eq!(state(&world, "r", "app"), is("Recreating", message, true));
    world.run(millis(200));
    assert_eq!(phase(&world, "r"), "Completed");
    let completed = time(status(&world, "r")["completionTime"].as_str().unwrap());
    assert!(completed.duration_since(started).as_secs() >= 9, "whole seconds");
    assert_eq!(writes(&world), 3);
}

#[test]
fn s4_8_4_the_pod_is_out_of_service_for_the_grace_before_a_container_is_stopped() {
    for version in ["v1beta1", "v1alpha1"] {
        let mut world = world();
        let mut request = request(&world, &["app"], &json!({"unreadyGracePeriodSeconds": 5}));
        request["apiVersion"] = format!("apps.kruise.io/{version}").into();
        world.put_request("r", &request);
        world.run(seconds(60));
        assert_eq!((phase(&world, "r"), writes(&world)), ("Recreating".to_owned(), 1));
        let message = "Waiting for the manager to take the pod out of service";
        assert_eq!(status(&world, "r")["message"], message);
        let since = world.now;
        let condition =
            json!({"type": "PreRecreateGrace", "status": "True", "lastTransitionTime": since.to_string()});
        let patch = match version {
            "v1beta1" => json!({"status": {"conditions": [condition]}}),
            _ => {
                json!({"metadata": {"annotations": {"crr.apps.kruise.io/unready-acquired": since.to_string()}}})
            }
        };
        world.put_request("r", &patch);
        world.run(millis(4_990));
        assert_eq!(stopped(&world).len(), 0);
        world.run(millis(200));
        assert_eq!(stopped(&world), ["app"], "{version}");
        assert_eq!(status(&world, "r").get("message"), None);
    }
}

#[test]
fn s4_8_5_a_hook_that_takes_longer_than_the_grace_ends_with_it_and_leaves_two_seconds() {
    let mut world = with_hook(&json!({"exec": {"command": ["sleep", "60"]}}));
    world.hook = seconds(60);
    ask(
        &mut world,
        "r",
        &["app"],
        &json!({"terminationGracePeriodSeconds": 5}),
    );
    world.run(seconds(10));
    let [(at, _, grace)] = stops(&world)[..] else {
        panic!("{:?}", stops(&world));
    };
    assert!((6.0..6.5).contains(&at) && grace == 2, "{at} {grace}");
    assert_eq!(
        world.messages()[1],
        "FailedPreStopHook PreStop hook failed: it did not end in time"
    );
}

#[test]
fn s4_8_6_without_a_grace_period_the_hook_is_skipped() {
    let mut world = with_hook(&json!({"exec": {"command": ["bye"]}}));
    ask(
        &mut world,
        "r",
        &["app"],
        &json!({"terminationGracePeriodSeconds": 0}),
    );
    world.run(seconds(1));
    assert_eq!((hooks(&world).len(), stops(&world)[0].2), (0, 2));
}

#[test]
fn s4_8_7_hooks_of_each_kind_run_with_the_address_of_the_pod() {
    let host: Box<str> = "10.0.0.7".into();
    let get = Handler::Http {
        scheme: "http".into(),
        host: host.clone(),
        port: 9,
        path: "/bye".into(),
        headers: Box::default(),
    };
    for (hook, run) in [
        (json!({"httpGet": {"path": "/bye", "port": "admin"}}), get),
        (
            json!({"tcpSocket": {"port": "admin"}}),
            Handler::Tcp { host, port: 9 },
        ),
        (
            json!({"exec": {"command": ["bye"]}}),
            Handler::Exec(["bye".into()].into()),
        ),
    ] {
        let mut world = with_hook(&hook);
        ask(
            &mut world,
            "r",
            &["app"],
            &json!({"terminationGracePeriodSeconds": 20}),
        );
        world.run(seconds(5));
        assert_eq!(hooks(&world), [run], "{hook}");
        assert_eq!(stops(&world)[0].2, 16);
    }
    let mut world = with_hook(&json!({"sleep": {"seconds": 3}}));
    ask(
        &mut world,
        "r",
        &["app"],
        &json!({"terminationGracePeriodSeconds": 20}),
    );
    world.run(seconds(2));
    assert_eq!(stopped(&world).len(), 0);
    world.run(seconds(3));
    assert_eq!((stopped(&world).len(), stops(&world)[0].2), (1, 17));
}

#[test]
fn s4_8_8_a_container_that_was_replaced_before_is_not_stopped_and_counts_once_it_is_ready() {
    let mut world = world();
    let request = request(&world, &["app"], &json!({}));
    world.containers.get_mut("uid-web").unwrap()[0].is_running = false;
    start(&mut world, "app");
    world.put_request("r", &request);
    world.run(seconds(5));
    assert_eq!(state(&world, "r", "app"), is("Recreating", WAITING, false));
    report(&mut world, "r", &["app"]);
    world.run(seconds(1));
    assert_eq!(state(&world, "r", "app"), is("Succeeded", "", false));
    assert_eq!(
        (phase(&world, "r"), stopped(&world).len()),
        ("Completed".to_owned(), 0)
    );
}

#[test]
fn s4_8_8_by_force_it_is_stopped_once() {
    let mut world = world();
    let request = request(&world, &["app"], &json!({"forceRecreate": true}));
    world.containers.get_mut("uid-web").unwrap()[0].is_running = false;
    start(&mut world, "app");
    world.put_request("r", &request);
    report(&mut world, "r", &["app"]);
    world.run(seconds(5));
    assert_eq!(stopped(&world), ["app+"]);
    replace(&mut world, "r", "app");
    world.run(seconds(5));
    assert_eq!(state(&world, "r", "app"), is("Succeeded", "", true));
    assert_eq!(stopped(&world), ["app+"]);
}

#[test]
fn s4_9_4_by_force_a_container_that_has_ended_is_stopped_when_it_runs_again() {
    let mut world = world();
    world.containers.get_mut("uid-web").unwrap()[0].is_running = false;
    ask(&mut world, "r", &["app"], &json!({"forceRecreate": true}));
    world.run(seconds(60));
    assert_eq!(state(&world, "r", "app"), is("Recreating", WAITING, false));
    replace(&mut world, "r", "app");
    world.run(seconds(5));
    assert_eq!(stopped(&world), ["app+"]);
    replace(&mut world, "r", "app");
    world.run(seconds(5));
    assert_eq!(
        (phase(&world, "r"), stopped(&world).len()),
        ("Completed".to_owned(), 1)
    );
}

#[test]
fn s4_8_9_a_container_that_cannot_be_stopped_ends_the_request_unless_failures_are_ignored() {
    let error = "kill container error: permission denied";
    for (policy, later, end) in [
        ("Fail", "Pending", "Completed"),
        ("Ignore", "Recreating", "Recreating"),
    ] {
        let mut world = world();
        world.stop_error = Some(Failure::Failed("permission denied".into()));
        let strategy = json!({"failurePolicy": policy, "orderedRecreate": true});
        ask(&mut world, "r", &["app", "log"], &strategy);
        // The second one can be stopped.
        world.run(millis(100));
        world.stop_error = None;
        world.run(seconds(5));
        assert_eq!(state(&world, "r", "app"), is("Failed", error, false));
        assert_eq!(state(&world, "r", "log").0, later);
        assert_eq!(phase(&world, "r"), end);
        assert_eq!(stopped(&world).len(), if policy == "Fail" { 1 } else { 2 });
    }
}

#[test]
fn s4_9_9_a_call_that_fails_although_the_container_ends_is_no_failure() {
    let mut world = world();
    world.stopping = seconds(30);
    world.stop_error = Some(Failure::Failed("context deadline exceeded".into()));
    ask(&mut world, "r", &["app"], &json!({}));
    world.run(seconds(1));
    world.containers.get_mut("uid-web").unwrap()[0].is_running = false;
    world.run(seconds(40));
    assert_eq!(state(&world, "r", "app"), is("Recreating", WAITING, true));
}

#[test]
fn s4_8_10_requests_for_one_pod_run_one_after_the_other_the_oldest_first() {
    let mut world = world();
    ask(&mut world, "b", &["app"], &json!({}));
    world.run(seconds(1));
    ask(&mut world, "a", &["log"], &json!({}));
    ask(&mut world, "c", &["web"], &json!({}));
    world.run(seconds(5));
    assert_eq!(stopped(&world), ["app"]);
    for name in ["a", "c"] {
        assert_eq!(phase(&world, name), "Pending");
        let message = "Waiting for ContainerRecreateRequest b of the same pod";
        assert_eq!(status(&world, name)["message"], message);
    }
    replace(&mut world, "b", "app");
    world.run(seconds(1));
    assert_eq!(
        (phase(&world, "b"), stopped(&world)),
        ("Completed".to_owned(), vec!["app".into(), "log".into()])
    );
    // The manager ends a request, or somebody deletes it: the next one runs.
    world.put_request(
        "a",
        &json!({"status": {"phase": "Completed", "completionTime": world.now.to_string()}}),
    );
    world.run(seconds(1));
    assert_eq!(stopped(&world), ["app", "log", "web"]);
    world.delete_request("c");
    ask(&mut world, "d", &["log"], &json!({"forceRecreate": true}));
    start(&mut world, "log");
    world.run(seconds(1));
    assert_eq!(stopped(&world), ["app", "log", "web", "log+"]);
}

#[test]
fn s4_9_1_a_request_whose_label_is_taken_away_lets_the_next_one_run() {
    let mut world = world();
    ask(&mut world, "a", &["app"], &json!({}));
    ask(&mut world, "b", &["log"], &json!({}));
    world.run(seconds(1));
    assert_eq!(stopped(&world), ["app"]);
    world.put_request(
        "a",
        &json!({"metadata": {"labels": {"crr.apps.kruise.io/active": null}}}),
    );
    world.run(seconds(1));
    assert_eq!(stopped(&world), ["app", "log"]);
}

#[test]
fn requests_for_different_pods_run_side_by_side() {
    let mut world = world();
    world.put_pod("other", &pod(&Value::Null));
    let app = container("app", "other", world.now);
    world.containers.insert("uid-other".into(), vec![app]);
    ask(&mut world, "a", &["app"], &json!({}));
    let mut other = request(&world, &["app"], &json!({}));
    other["spec"]["podName"] = "other".into();
    other["spec"]["containers"][0]["statusContext"]["containerID"] = "containerd://other".into();
    other["metadata"]["labels"]["crr.apps.kruise.io/pod-uid"] = "uid-other".into();
    world.pods.get_mut("other").unwrap()["metadata"]["uid"] = "uid-other".into();
    world.put_request("b", &other);
    world.run(seconds(1));
    assert_eq!(stopped(&world), ["app", "other"]);
}
