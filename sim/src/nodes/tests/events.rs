//! Events about pods, in the words of kubelet and scheduler.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Options;
use super::with_spec;
use crate::world::tests::{PODS, Play};

const EVENTS: &str = "/api/v1/namespaces/default/events";

fn play(events: bool) -> Play {
    let mut play = Play::new(&Options {
        events,
        ..Options::default()
    });
    play.node("n1");
    play.rest();
    play
}

/// Who recorded which events since the last time, in order.
fn recorded(play: &mut Play, seen: &mut usize) -> Vec<String> {
    let list = play.get(EVENTS).unwrap();
    let mut items = list["items"].as_array().cloned().unwrap_or_default();
    let version = |event: &Value| -> u64 {
        let text = event["metadata"]["resourceVersion"].as_str();
        text.unwrap().parse().unwrap()
    };
    items.sort_by_key(version);
    let text = |event: &Value, pointer: &str| {
        let found = event.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or("-").to_owned()
    };
    let new = items.iter().skip(std::mem::replace(seen, items.len()));
    new.map(|event| {
        let of = ["/source/component", "/type", "/reason", "/message"];
        of.map(|pointer| text(event, pointer)).join(" | ")
    })
    .collect()
}

#[test]
fn a_pod_has_the_events_of_scheduler_and_kubelet_from_its_node_to_its_end() {
    let mut play = play(true);
    let mut seen = 0;
    play.post(PODS, &with_spec("p", &json!({})));
    play.rest();
    let pulled = "Successfully pulled image \"web:1\" in 5s (5s including waiting). Image size: 0 bytes.";
    assert_eq!(
        recorded(&mut play, &mut seen),
        [
            "default-scheduler | Normal | Scheduled | Successfully assigned default/p to n1",
            "kubelet | Normal | Pulling | Pulling image \"web:1\"",
            &format!("kubelet | Normal | Pulled | {pulled}"),
            "kubelet | Normal | Created | Created container: main",
            "kubelet | Normal | Started | Started container main",
        ]
    );
    let event = play.get(EVENTS).unwrap()["items"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["reason"] == "Started").cloned())
        .unwrap();
    assert_eq!(event["source"], json!({"component": "kubelet", "host": "n1"}));
    assert_eq!(event["involvedObject"]["fieldPath"], "spec.containers{main}");
    assert_eq!(event["involvedObject"]["uid"], play.pod("p")["metadata"]["uid"]);
    let image = |image: &str| json!({"spec": {"containers": [{"name": "main", "image": image}]}});
    play.strategic(&format!("{PODS}/p"), &image("web:2"));
    play.rest();
    let changed = recorded(&mut play, &mut seen);
    assert_eq!(
        changed[0],
        "kubelet | Normal | Killing | Container main definition changed, will be restarted"
    );
    assert!(
        changed[2].contains("in 1.5s (1.5s including waiting)"),
        "{changed:?}"
    );
    play.strategic(&format!("{PODS}/p"), &image("web:1"));
    play.rest();
    let back = recorded(&mut play, &mut seen);
    assert_eq!(
        back[1],
        "kubelet | Normal | Pulled | Container image \"web:1\" already present on machine"
    );
    play.delete(&format!("{PODS}/p"));
    play.rest();
    assert_eq!(
        recorded(&mut play, &mut seen),
        ["kubelet | Normal | Killing | Stopping container main"]
    );
}

#[test]
fn what_keeps_a_container_from_its_start_is_an_event_too() {
    let mut play = play(true);
    let mut seen = 0;
    let main = json!({"name": "main", "image": "registry.invalid/web:1"});
    play.post(PODS, &with_spec("p", &json!({"containers": [main]})));
    play.pass(Duration::from_mins(1));
    let events = recorded(&mut play, &mut seen);
    let failed = "kubelet | Warning | Failed | ";
    let failure =
        "failed to resolve image \"registry.invalid/web:1\": dial tcp: lookup registry.invalid: no such host";
    assert_eq!(
        events[1..],
        [
            "kubelet | Normal | Pulling | Pulling image \"registry.invalid/web:1\"".to_owned(),
            format!("{failed}Failed to pull image \"registry.invalid/web:1\": {failure}"),
            format!("{failed}Error: ErrImagePull"),
            "kubelet | Normal | BackOff | Back-off pulling image \"registry.invalid/web:1\"".to_owned(),
            format!("{failed}Error: ImagePullBackOff"),
        ]
    );
    let source = json!({"configMapRef": {"name": "settings"}});
    let main = json!({"name": "main", "image": "web:1", "envFrom": [source]});
    play.post(PODS, &with_spec("q", &json!({"containers": [main]})));
    play.pass(Duration::from_mins(1));
    let events = recorded(&mut play, &mut seen);
    assert_eq!(
        events.last().unwrap(),
        &format!("{failed}Error: configmap \"settings\" not found")
    );
}

#[test]
fn without_the_option_pods_cost_no_requests_for_events() {
    let mut play = play(false);
    play.post(PODS, &with_spec("p", &json!({})));
    play.rest();
    assert_eq!(recorded(&mut play, &mut 0), [""; 0]);
}
