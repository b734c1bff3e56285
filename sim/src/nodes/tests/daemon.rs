//! OpenKruise's daemon on the nodes: environments that read labels and annotations.

use serde_json::{Value, json};

use super::super::Options;
use crate::world::tests::{PODS, Play, pod};

const REPORT: &str = "apps.kruise.io/runtime-containers-meta";

fn play(daemon: bool) -> Play {
    let mut play = Play::new(&Options {
        daemon,
        ..Options::default()
    });
    play.node("n1");
    play.rest();
    play
}

/// A pod whose container reads the annotation `config`.
fn reading(play: &mut Play) {
    let mut pod = pod("a");
    pod["metadata"]["annotations"] = json!({"config": "foo"});
    let field = json!({"fieldPath": "metadata.annotations['config']"});
    pod["spec"]["containers"][0]["env"] = json!([{"name": "e2", "valueFrom": {"fieldRef": field}}]);
    play.post(PODS, &pod);
    play.rest();
}

fn change(play: &mut Play, ready: &str) {
    let gate = json!({"conditions": [{"type": "InPlaceUpdateReady", "status": ready}]});
    play.merge(&format!("{PODS}/a/status"), &json!({"status": gate}));
    play.rest();
    play.merge(
        &format!("{PODS}/a"),
        &json!({"metadata": {"annotations": {"config": "v2"}}}),
    );
    play.rest();
}

fn report(pod: &Value) -> Value {
    let text = pod["metadata"]["annotations"][REPORT].as_str().unwrap_or("null");
    serde_json::from_str(text).unwrap()
}

fn restarts(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["restartCount"]
}

#[test]
fn what_a_container_runs_with_is_reported_as_published() {
    let mut play = play(true);
    reading(&mut play);
    let pod = play.pod("a");
    let report = report(&pod);
    let id = &pod["status"]["containerStatuses"][0]["containerID"];
    assert_eq!(report["containers"][0]["containerID"], *id);
    // Of `[{"name":"e2","value":"foo"}]`.
    let hashes = &report["containers"][0]["hashes"];
    assert!(hashes["plainHash"].is_u64());
    assert_eq!(hashes["extractedEnvFromMetadataHash"], 2_053_173_458);
}

#[test]
fn an_annotation_that_is_gone_is_reported_as_a_variable_without_a_value() {
    let mut play = play(true);
    reading(&mut play);
    let pod_path = format!("{PODS}/a");
    let gate = json!({"conditions": [{"type": "InPlaceUpdateReady", "status": "False"}]});
    play.merge(&format!("{pod_path}/status"), &json!({"status": gate}));
    play.merge(&pod_path, &json!({"metadata": {"annotations": {"config": null}}}));
    play.rest();
    let pod = play.pod("a");
    assert_eq!(*restarts(&pod), 1);
    let hash = &report(&pod)["containers"][0]["hashes"]["extractedEnvFromMetadataHash"];
    // Of `[{"name":"e2"}]`.
    assert_eq!(*hash, 1_885_397_378);
}

#[test]
fn a_container_is_restarted_with_the_new_value_while_its_pod_is_out_of_service() {
    let mut play = play(true);
    reading(&mut play);
    let before = report(&play.pod("a"));
    change(&mut play, "False");
    let pod = play.pod("a");
    assert_eq!(*restarts(&pod), 1);
    let after = report(&pod);
    assert_eq!(after["containers"][0]["restartCount"], 1);
    let hash = |report: &Value| report["containers"][0]["hashes"]["extractedEnvFromMetadataHash"].clone();
    assert_ne!(hash(&before), hash(&after));
}

#[test]
fn nothing_restarts_while_its_pod_is_in_service_or_where_no_daemon_is() {
    let mut serving = play(true);
    reading(&mut serving);
    change(&mut serving, "True");
    assert_eq!(*restarts(&serving.pod("a")), 0);
    let mut alone = play(false);
    reading(&mut alone);
    change(&mut alone, "False");
    let pod = alone.pod("a");
    assert_eq!(*restarts(&pod), 0);
    assert_eq!(report(&pod), Value::Null);
}
