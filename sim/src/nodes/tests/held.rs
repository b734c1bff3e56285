//! Containers that cannot begin: without their image, or without what their environment is made of.

use std::time::Duration;

use serde_json::{Value, json};

use super::{container, play, with_spec};
use crate::world::tests::{PODS, Play, condition, is_ready};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The containers of a pod, in a word each.
fn shown(play: &mut Play, name: &str) -> Vec<String> {
    let pod = play.pod(name);
    let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
    statuses.iter().map(container).collect()
}

/// What a container of a pod waits for, in words.
fn message(play: &mut Play, name: &str, at: usize) -> String {
    let pod = play.pod(name);
    let waiting = &pod["status"]["containerStatuses"][at]["state"]["waiting"];
    waiting["message"].as_str().unwrap().to_owned()
}

fn barriers() -> Value {
    let one = |name: &str, key: &str| {
        let reference = json!({"name": "p-barrier", "key": key});
        json!({"name": name, "image": "web:1", "env": [{"name": "B", "valueFrom": {"configMapKeyRef": reference}}]})
    };
    json!({"containers": [one("main", "p_0"), one("proxy", "p_10")]})
}

#[test]
fn a_container_waits_for_the_key_that_its_environment_reads() {
    let mut play = play();
    play.post(PODS, &with_spec("p", &barriers()));
    play.rest();
    let waits = "CreateContainerConfigError";
    assert_eq!(
        shown(&mut play, "p"),
        [format!("main-0 {waits}"), format!("proxy-0 {waits}")]
    );
    assert_eq!(message(&mut play, "p", 0), "configmap \"p-barrier\" not found");
    assert_eq!(play.pod("p")["status"]["phase"], "Pending");

    play.post(
        MAPS,
        &json!({"metadata": {"name": "p-barrier"}, "data": {"p_10": "true"}}),
    );
    play.pass(Duration::from_secs(11));
    assert_eq!(
        shown(&mut play, "p"),
        [format!("main-0 {waits}"), "proxy+0 running web:1".into()]
    );
    assert_eq!(
        message(&mut play, "p", 0),
        "couldn't find key p_0 in ConfigMap default/p-barrier"
    );
    let map = format!("{MAPS}/p-barrier");
    play.merge(&map, &json!({"data": {"p_0": "true"}}));
    play.rest();
    assert!(is_ready(&play.pod("p")));

    // What runs goes on without; the next run waits again.
    play.delete(&map);
    play.rest();
    assert!(is_ready(&play.pod("p")));
    let other = json!({"spec": {"containers": [{"name": "proxy", "image": "web:2"}]}});
    play.strategic(&format!("{PODS}/p"), &other);
    play.rest();
    assert_eq!(
        shown(&mut play, "p"),
        ["main+0 running web:1".to_owned(), format!("proxy-0 {waits}")]
    );
    let pod = play.pod("p");
    assert_eq!(pod["status"]["phase"], "Running");
    let last = &pod["status"]["containerStatuses"][1]["lastState"];
    assert!(last["terminated"].is_object(), "{last}");
}

#[test]
fn what_is_optional_or_there_is_not_waited_for() {
    let mut play = play();
    play.post(
        MAPS,
        &json!({"metadata": {"name": "all"}, "binaryData": {"k": "eA=="}}),
    );
    play.post(
        "/api/v1/namespaces/default/secrets",
        &json!({"metadata": {"name": "all"}, "data": {"k": "eA=="}}),
    );
    let env = |kind: &str, more: Value| {
        let mut reference = json!({"name": "all", "key": "k"});
        reference
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"name": kind, "valueFrom": {kind: reference}})
    };
    let main = json!({"name": "main", "image": "web:1",
        "envFrom": [{"configMapRef": {"name": "all"}}, {"secretRef": {"name": "none", "optional": true}}],
        "env": [{"name": "PLAIN", "value": "v"}, env("configMapKeyRef", json!({})), env("secretKeyRef", json!({})),
            env("secretKeyRef", json!({"key": "none", "optional": true}))]});
    play.post(PODS, &with_spec("p", &json!({"containers": [main]})));
    play.rest();
    assert!(is_ready(&play.pod("p")));
    let main = json!({"name": "main", "image": "web:1", "envFrom": [{"secretRef": {"name": "none"}}]});
    play.post(PODS, &with_spec("q", &json!({"containers": [main]})));
    play.rest();
    assert_eq!(shown(&mut play, "q"), ["main-0 CreateContainerConfigError"]);
    assert_eq!(message(&mut play, "q", 0), "secret \"none\" not found");
}

#[test]
fn an_image_from_nowhere_is_never_there_until_the_pod_names_another() {
    let mut play = play();
    let two =
        json!({"containers": [{"name": "main", "image": "web:1"}, {"name": "side", "image": "side:1"}]});
    play.post(PODS, &with_spec("p", &two));
    play.rest();
    let side = |image: &str| json!({"spec": {"containers": [{"name": "side", "image": image}]}});
    play.strategic(&format!("{PODS}/p"), &side("registry.invalid/side:2"));
    play.pass(Duration::from_secs(5));
    assert_eq!(
        shown(&mut play, "p"),
        ["main+0 running web:1", "side-0 ErrImagePull"]
    );
    play.rest();
    assert_eq!(
        shown(&mut play, "p"),
        ["main+0 running web:1", "side-0 ImagePullBackOff"]
    );
    let why = message(&mut play, "p", 1);
    assert!(why.ends_with("lookup registry.invalid: no such host"), "{why}");
    let pod = play.pod("p");
    assert_eq!(condition(&pod, "Ready").0, "False");
    // What ran last is still reported.
    assert_eq!(pod["status"]["containerStatuses"][1]["image"], "side:1");
    play.strategic(&format!("{PODS}/p"), &side("side:3"));
    play.rest();
    assert_eq!(
        shown(&mut play, "p"),
        ["main+0 running web:1", "side+1 running side:3"]
    );
    play.post(
        PODS,
        &with_spec(
            "q",
            &json!({"containers": [{"name": "main", "image": "a.invalid/b"}]}),
        ),
    );
    play.delete(&format!("{PODS}/q"));
    play.rest();
    assert_eq!(play.get(&format!("{PODS}/q")), None, "it can go all the same");
}
