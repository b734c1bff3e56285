//! Kubelets of several versions.

use std::time::Duration;

use go_compat::container::{image_hash, whole_hash};
use serde_json::{Value, json};

use super::super::Options;
use super::with_spec;
use crate::world::tests::{PODS, Play, is_ready};

/// A cluster of one node of this version, on which OpenKruise's daemon runs.
fn play(version: &str) -> Play {
    let mut play = Play::new(&Options {
        daemon: true,
        ..Options::default()
    });
    let info = json!({"kubeletVersion": version});
    play.post(
        "/api/v1/nodes",
        &json!({"metadata": {"name": "n1"}, "status": {"nodeInfo": info}}),
    );
    play.rest();
    play
}

/// A pod whose container starts slowly.
fn probed(play: &mut Play) {
    let probe = json!({"initialDelaySeconds": 20, "periodSeconds": 4, "exec": {"command": ["true"]}});
    let main = json!({"name": "main", "image": "web:1", "startupProbe": probe});
    play.post(PODS, &with_spec("a", &json!({"containers": [main]})));
    play.rest();
}

fn change_image(play: &mut Play) {
    let main = json!({"name": "main", "image": "web:2"});
    play.strategic(&format!("{PODS}/a"), &json!({"spec": {"containers": [main]}}));
}

/// Each `started` of the container with its new image, in the order of reports, and how long it lasted, in whole
/// seconds.
fn reports(play: &mut Play) -> Vec<(bool, i64)> {
    let mut seen: Vec<(bool, i64)> = Vec::new();
    for second in 0..60 {
        play.pass(Duration::from_secs(1));
        let pod = play.pod("a");
        let status = &pod["status"]["containerStatuses"][0];
        if status["image"] != "web:2" || status["state"]["running"].is_null() {
            continue;
        }
        let started = status["started"] == true;
        assert_eq!(status["ready"], status["started"]);
        assert_eq!(is_ready(&pod), started);
        match seen.last() {
            Some((last, _)) if *last == started => {}
            _ => seen.push((started, second)),
        }
    }
    let ends = seen.iter().skip(1).map(|(_, at)| *at).chain([60]);
    let pairs = seen.iter().zip(ends);
    pairs.map(|((started, from), to)| (*started, to - from)).collect()
}

#[test]
fn some_kubelets_report_the_probes_of_the_container_before_until_the_startup_probe_runs() {
    for (version, expected) in [
        ("v1.34.2", vec![false, true]),
        ("v1.35.0", vec![true, false, true]),
        ("v1.37.4", vec![true, false, true]),
        ("v1.38.0", vec![false, true]),
    ] {
        let mut play = play(version);
        probed(&mut play);
        change_image(&mut play);
        let reports = reports(&mut play);
        let started: Vec<bool> = reports.iter().map(|(started, _)| *started).collect();
        assert_eq!(started, expected, "{version}");
        if expected.len() == 3 {
            assert_eq!(reports[0].1, 4, "for one period");
        }
    }
}

#[test]
fn newer_kubelets_report_the_generation_that_they_have_seen() {
    for (version, reported) in [("v1.33.9", Value::Null), ("v1.34.0", json!(2))] {
        let mut play = play(version);
        probed(&mut play);
        change_image(&mut play);
        play.rest();
        let pod = play.pod("a");
        assert_eq!(pod["metadata"]["generation"], 2);
        assert_eq!(pod["status"]["observedGeneration"], reported, "{version}");
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let ready = conditions
            .iter()
            .find(|one| one["type"] == "ContainersReady")
            .unwrap();
        assert_eq!(ready["observedGeneration"], reported, "{version}");
    }
}

#[test]
fn older_kubelets_record_the_hash_of_whole_containers() {
    let main = json!({"name": "main", "image": "web:1", "env": [
        {"name": "e2", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['config']"}}}]});
    for version in ["v1.30.9", "v1.31.0"] {
        let mut play = play(version);
        play.post(PODS, &with_spec("a", &json!({"containers": [main]})));
        play.rest();
        let pod = play.pod("a");
        let report = pod["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"].as_str();
        let report: Value = serde_json::from_str(report.unwrap()).unwrap();
        let expected = if version == "v1.30.9" {
            whole_hash(&pod["spec"]["containers"][0])
        } else {
            image_hash("main", "web:1")
        };
        assert_eq!(
            report["containers"][0]["hashes"]["plainHash"], expected,
            "{version}"
        );
    }
}

#[test]
fn a_node_has_the_version_of_the_api_unless_it_brings_its_own() {
    let mut play = play("v1.36.1");
    play.node("n2");
    play.rest();
    for (node, version) in [("n1", "v1.36.1"), ("n2", "v1.34.2")] {
        let node = play.get(&format!("/api/v1/nodes/{node}")).unwrap();
        assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], version);
    }
}
