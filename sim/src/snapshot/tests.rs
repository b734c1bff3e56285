use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::SnapshotError;
use crate::api::{Api, Config, Outcome};
use crate::nodes::Options;
use crate::watch::WatchEvent;
use crate::wire::{Method, Request};
use crate::world::World;
use crate::world::tests::{PODS, Play, is_ready, pod};

/// A definition with an object, a node, a pod that runs and one whose image is being pulled.
fn played() -> Play {
    let mut play = Play::new(&Options::default());
    play.node("n1");
    let definition = json!({"metadata": {"name": "rocks.a.example.com"}, "spec": {
        "group": "a.example.com", "scope": "Namespaced", "names": {"plural": "rocks", "kind": "Rock"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    play.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    );
    let rock = json!({"apiVersion": "a.example.com/v1", "kind": "Rock", "metadata": {"name": "r"}, "n": 1});
    play.post("/apis/a.example.com/v1/namespaces/default/rocks", &rock);
    play.post(PODS, &pod("old"));
    play.rest();
    let mut young = pod("young");
    young["spec"]["containers"][0]["image"] = json!("another:1");
    play.post(PODS, &young);
    play.pass(Duration::from_millis(1500));
    play
}

fn restored(text: &str) -> Result<Api, SnapshotError> {
    Api::restore(&Config::default(), text)
}

fn over(text: &str, now: Timestamp) -> Play {
    Play(World::over(restored(text).unwrap(), &Options::default(), 7, now).unwrap())
}

#[test]
fn what_was_stored_is_stored_again_byte_for_byte() {
    let mut play = played();
    let text = play.0.api().snapshot();
    assert_eq!(restored(&text).unwrap().snapshot(), text);
}

#[test]
fn pods_continue_where_they_were() {
    let mut play = played();
    let old = play.pod("old");
    assert!(is_ready(&old) && !is_ready(&play.pod("young")));
    let mut again = over(&play.0.api().snapshot(), play.0.now());
    again.rest();
    assert_eq!(
        again.pod("old"),
        old,
        "it was as it should be, so nothing is written"
    );
    let young = again.pod("young");
    assert!(is_ready(&young), "{young}");
    assert_ne!(young["status"]["podIP"], old["status"]["podIP"]);
}

#[test]
fn neither_uids_nor_revisions_come_twice_and_older_watches_end() {
    let mut play = played();
    let text = play.0.api().snapshot();
    let mut again = over(&text, play.0.now());
    let new = again.post(PODS, &pod("new"));
    let same = play.post(PODS, &pod("new"));
    assert_eq!(new["metadata"], same["metadata"], "the sequences go on");
    assert!(!text.contains(new["metadata"]["uid"].as_str().unwrap()));
    for path in [PODS, "/api/v1/namespaces/default/configmaps"] {
        let target = format!("{path}?watch=true&resourceVersion=2");
        let watch = Request::new(Method::Get, &target, None);
        let Outcome::Watch(id) = again.0.handle(&watch) else {
            panic!("{path} can be watched");
        };
        let now = again.0.now();
        let events = again.0.api().watch_events(id, now);
        let ended = events.first().and_then(WatchEvent::text).unwrap_or_default();
        assert!(ended.contains("\"code\":410"), "{path}: {ended}");
    }
}

#[test]
fn damaged_texts_are_refused_with_the_line_and_the_reason() {
    let mut play = played();
    let text = play.0.api().snapshot();
    assert_eq!(restored("").unwrap_err(), SnapshotError::Format);
    assert_eq!(restored("{\"a\":1}\n").unwrap_err(), SnapshotError::Format);
    let later = text.replacen("\"version\":1", "\"version\":2", 1);
    assert_eq!(restored(&later).unwrap_err(), SnapshotError::Version(2));
    let short: Vec<&str> = text.lines().collect();
    let short = short[..short.len() - 1].join("\n");
    assert!(matches!(
        restored(&short).unwrap_err(),
        SnapshotError::Incomplete { .. }
    ));
    let created = "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"";
    for (found, put, why) in [
        (created, "\"creationTimestamp\":\"x\"", "parsing time"),
        ("\"labels\":{\"app\":\"web\"}", "\"labels\":3", "labels"),
        (
            "\"revision\":",
            "\"revision\":92233720368547759",
            "line 1: revision",
        ),
        ("{\"group\":\"\",\"resource\":\"pods\"", "pods", "expected value"),
        ("\"resource\":\"pods\"", "\"resource\":\"rods\"", "not known"),
        ("\"kind\":\"Pod\"", "\"kind\":\"Rod\"", "must be a Pod of v1"),
        ("\"name\":\"young\"", "\"nome\":\"young\"", "metadata.name"),
        ("\"name\":\"young\"", "\"name\":\"old\"", "there twice"),
        (
            "\"resourceVersion\":\"",
            "\"resourceVersion\":\"9999",
            "metadata.resourceVersion",
        ),
    ] {
        assert!(text.contains(found), "{found}");
        let error = restored(&text.replace(found, put)).unwrap_err().to_string();
        assert!(error.starts_with("line ") && error.contains(why), "{error}");
    }
}
