//! Ephemeral containers: they come to a pod that exists, run to their end, and change nothing else.

use std::time::Duration;

use serde_json::{Value, json};

use super::{container, play, with_spec};
use crate::wire::{Method, Request};
use crate::world::tests::{PODS, Play, is_ready, pod};

fn debugger(name: &str, command: &str) -> Value {
    json!({"name": name, "image": "busybox:1", "command": ["sh", "-c", command]})
}

/// Adds containers to pod `a` by a patch.
fn add(play: &mut Play, containers: &Value) -> (u16, Value) {
    let body =
        json!({"metadata": {"labels": {"dropped": "yes"}}, "spec": {"ephemeralContainers": containers}});
    let path = format!("{PODS}/a/ephemeralcontainers");
    let request = Request::new(Method::Patch, &path, Some(&body));
    let response = play
        .0
        .handle(&request.content_type("application/strategic-merge-patch+json"))
        .response()
        .unwrap();
    (response.code, response.value())
}

fn statuses(play: &mut Play) -> Vec<String> {
    let pod = play.pod("a");
    let list = pod["status"]["ephemeralContainerStatuses"].as_array();
    list.into_iter().flatten().map(container).collect()
}

fn running() -> Play {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    play
}

#[test]
fn ephemeral_containers_run_to_their_end_and_the_pod_goes_on() {
    let mut play = running();
    let before = play.pod("a");
    let both = json!([debugger("good", "sleep 30"), debugger("bad", "sleep 60; exit 3")]);
    assert_eq!(add(&mut play, &both).0, 200);
    play.pass(Duration::from_secs(20));
    assert_eq!(
        statuses(&mut play),
        ["good-0 running busybox:1", "bad-0 running busybox:1"]
    );
    play.pass(Duration::from_secs(20));
    assert_eq!(statuses(&mut play), ["good-0 ended 0", "bad-0 running busybox:1"]);
    play.rest();
    let after = play.pod("a");
    assert_eq!(
        statuses(&mut play),
        ["good-0 ended 0", "bad-0 ended 3"],
        "none runs again"
    );
    let ended = &after["status"]["ephemeralContainerStatuses"][1]["state"]["terminated"];
    assert!(
        ended["finishedAt"].is_string() && ended["reason"] == "Error",
        "{ended}"
    );
    for member in ["containerStatuses", "conditions", "phase"] {
        let (was, is) = (&before["status"][member], &after["status"][member]);
        let masked = |value: &Value| match value.as_array() {
            Some(list) if member == "conditions" => list.iter().map(|one| one["status"].clone()).collect(),
            _ => value.clone(),
        };
        assert_eq!(masked(was), masked(is), "{member}");
    }
    assert!(is_ready(&after));
    assert_eq!(
        after["metadata"]["labels"], before["metadata"]["labels"],
        "nothing else changes"
    );
    assert_eq!(after["metadata"]["generation"], json!(2));
    assert_eq!(
        after["spec"]["ephemeralContainers"][0]["terminationMessagePolicy"], "File",
        "the server fills in what is left out"
    );
}

#[test]
fn ephemeral_containers_are_added_and_never_changed_or_removed() {
    let mut play = running();
    let first = json!([debugger("first", "sleep infinity")]);
    assert_eq!(add(&mut play, &first).0, 200);
    play.rest();
    let stored = play.pod("a");
    let (code, again) = add(&mut play, &first);
    assert_eq!(code, 200, "the same again changes nothing");
    assert_eq!(
        again["metadata"]["resourceVersion"],
        stored["metadata"]["resourceVersion"]
    );
    for (change, why) in [
        (
            json!([debugger("first", "sleep 5")]),
            "\"first\" may not be changed",
        ),
        (
            json!([{"$patch": "delete", "name": "first"}]),
            "\"first\" may not be removed",
        ),
        (
            json!([{"name": "main", "image": "x:1"}]),
            "[1].name: Duplicate value: \"main\"",
        ),
        (json!([{"name": "other"}]), "[1].image: Required value"),
        (
            json!([{"name": "other", "image": "x:1", "targetContainerName": "none"}]),
            "[1].targetContainerName: Not found: \"none\"",
        ),
        (
            json!([{"name": "other", "image": "x:1", "ports": [{"containerPort": 1}]}]),
            "[1].ports: Forbidden",
        ),
    ] {
        let (code, status) = add(&mut play, &change);
        let message = status["message"].as_str().unwrap();
        assert!(
            code == 422 && message.contains(why),
            "{code} {message}, not {why}"
        );
    }
    assert_eq!(play.pod("a"), stored);
    let target = json!([{"name": "second", "image": "x:1", "targetContainerName": "main"}]);
    assert_eq!(add(&mut play, &target).0, 200);
    play.rest();
    assert_eq!(
        statuses(&mut play),
        ["first-0 running busybox:1", "second-0 ended 0"]
    );
}

#[test]
fn the_pod_itself_takes_no_ephemeral_containers() {
    let mut play = running();
    let body = json!({"spec": {"ephemeralContainers": [debugger("first", "sleep 5")]}});
    let request = Request::new(Method::Patch, &format!("{PODS}/a"), Some(&body));
    let request = request.content_type("application/strategic-merge-patch+json");
    assert_eq!(play.0.handle(&request).response().unwrap().code, 422);
}

#[test]
fn ephemeral_containers_wait_for_no_other_and_end_with_their_pod() {
    let mut play = play();
    let init = json!([{"name": "i", "image": "i:1", "envFrom": [{"configMapRef": {"name": "absent"}}]}]);
    play.post(PODS, &with_spec("a", &json!({"initContainers": init})));
    play.rest();
    add(&mut play, &json!([debugger("first", "sleep infinity")]));
    play.pass(Duration::from_secs(30));
    assert_eq!(statuses(&mut play), ["first-0 running busybox:1"]);
    play.delete(&format!("{PODS}/a"));
    play.pass(Duration::from_mins(2));
    assert!(play.get(&format!("{PODS}/a")).is_none());
}
