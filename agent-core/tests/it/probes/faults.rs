//! Restarts of agents, runtimes and API servers, and specifications that make no sense.

use kruise_agent_core::{Event, Failure, ProbeResult, RunId, WriteError};
use serde_json::{Value, json};

use super::node;
use super::world::{World, exec, fails, pod};
use crate::world::{millis, seconds};

/// A node whose pod has the result `Succeeded`.
fn probed() -> World {
    let mut world = node();
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 10}))])]);
    world.run(seconds(5));
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
    world
}

#[test]
fn s7_12_10_an_agent_that_starts_anew_keeps_results_of_containers_that_still_run() {
    let mut world = probed();
    let (writes, events) = (world.patches.len(), world.events.len());
    world.restart();
    world.run(seconds(60));
    assert_eq!((world.patches.len(), world.events.len()), (writes, events));
    assert!(world.runs.len() > 3, "and probes on");
}

#[test]
fn an_agent_that_starts_after_a_container_began_anew_does_not_take_the_result_of_its_predecessor() {
    let mut world = probed();
    world.begin("a", "app");
    world.answers.insert("idle".into(), fails("no"));
    world.takes = millis(900);
    world.restart();
    world.run(seconds(30));
    let said: Vec<&Value> = world
        .patches
        .iter()
        .map(|(_, patch)| patch.pointer("/2/value/probeStates/0/state"))
        .map(|state| state.unwrap_or(&Value::Null))
        .collect();
    assert_eq!(said[1..], ["Unknown", "Failed"]);
}

#[test]
fn the_probes_of_an_agent_that_starts_are_spread_over_their_periods_and_those_of_a_pod_stay_together() {
    let mut world = World::new();
    let names: Vec<String> = (0..40).map(|number| format!("p{number}")).collect();
    for name in &names {
        world.begin(name, "app");
    }
    let slow = json!({"periodSeconds": 100});
    let pods: Vec<Value> = names
        .iter()
        .map(|name| {
            let probe = |number: u8| exec(&format!("m#{number}"), &format!("{number} {name}"), &slow);
            pod(name, &[probe(1), probe(2)])
        })
        .collect();
    world.ask(&pods);
    world.run(seconds(5));
    let began = world.now;
    world.restart();
    world.run(seconds(100));
    let first: Vec<f64> = names
        .iter()
        .map(|name| world.times(&format!("1 {name}"), began)[0])
        .collect();
    for (index, name) in names.iter().enumerate() {
        let second = world.times(&format!("2 {name}"), began)[0];
        assert!((first[index] - second).abs() < 0.1, "{name}");
    }
    let early = first.iter().filter(|time| **time < 50.0).count();
    assert!((8..=32).contains(&early), "{first:?}");
}

#[test]
fn a_runtime_that_is_away_changes_no_result_and_probes_go_on_when_it_is_back() {
    let mut world = probed();
    world.is_up = false;
    world.run(seconds(120));
    assert_eq!(
        (world.says("a", "m#idle").as_str(), world.patches.len()),
        ("Succeeded", 1)
    );
    world.is_up = true;
    world.answers.insert("idle".into(), fails("no"));
    world.run(seconds(60));
    assert_eq!(world.says("a", "m#idle"), "Failed no");
}

#[test]
fn a_command_that_cannot_be_run_makes_the_result_unknown_after_three_times() {
    let mut world = probed();
    let problem = ProbeResult::NotRun(Failure::Failed("no such file".into()));
    world.answers.insert("idle".into(), problem);
    world.run(seconds(20));
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
    world.run(seconds(10));
    assert_eq!(
        world.says("a", "m#idle"),
        "Unknown the probe cannot be run: no such file"
    );
    world.run(seconds(60));
    assert_eq!((world.patches.len(), world.told().len()), (2, 1));
    world.answers.clear();
    world.run(seconds(10));
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
}

#[test]
fn a_command_that_cannot_be_run_is_reported_once_though_the_runtime_says_it_differently_each_time() {
    let mut world = probed();
    for number in 0..30 {
        let problem = format!("failed to start exec {number}: no such file");
        world.answers.insert(
            "idle".into(),
            ProbeResult::NotRun(Failure::Failed(problem.into())),
        );
        world.run(seconds(10));
    }
    assert!(
        world
            .says("a", "m#idle")
            .starts_with("Unknown the probe cannot be run: failed to start exec ")
    );
    assert_eq!(world.patches.len(), 2);
}

#[test]
fn a_runtime_that_lists_slowly_keeps_no_probe_from_running_and_is_not_asked_without_pause() {
    let mut world = probed();
    world.listing_takes = seconds(2);
    world.answers.insert("idle".into(), fails("no"));
    let (runs, listings) = (world.runs.len(), world.listings);
    world.run(seconds(100));
    assert!(
        world.says("a", "m#idle").starts_with("Failed"),
        "{}",
        world.says("a", "m#idle")
    );
    let runs = world.runs.len() - runs;
    assert!(runs >= 8, "{runs}");
    assert!(
        world.listings - listings <= runs + 2,
        "{} for {runs}",
        world.listings - listings
    );
}

#[test]
fn an_api_server_that_is_away_gets_the_newest_results_later() {
    let mut world = node();
    world.api_error = Some(WriteError::Failed("connection refused".into()));
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 10}))])]);
    world.run(seconds(30));
    world.answers.insert("idle".into(), fails("no"));
    world.run(seconds(300));
    assert!((3..20).contains(&world.patches.len()), "{}", world.patches.len());
    world.api_error = None;
    world.run(seconds(120));
    assert_eq!(world.says("a", "m#idle"), "Failed no");
}

#[test]
fn a_status_that_somebody_else_has_written_is_tested_and_made_right() {
    let mut world = probed();
    world.object["status"]["podProbeStatuses"] = json!([{"namespace": "shop", "name": "x", "uid": "x"}]);
    world.answers.insert("idle".into(), fails("no"));
    world.run(seconds(60));
    let writes = world.patches.len();
    assert!(
        (2..12).contains(&writes),
        "the test fails, and the watch has not shown why: {writes}"
    );
    assert_eq!(world.says("x", "m#idle"), "");
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 9}))])]);
    world.run(seconds(120));
    assert_eq!(world.says("a", "m#idle"), "Failed no");
    assert_eq!(
        world.object["status"]["podProbeStatuses"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn a_list_that_is_deleted_and_made_anew_gets_its_results_again() {
    let mut world = probed();
    world.delete();
    world.run(seconds(30));
    let runs = world.runs.len();
    world.run(seconds(30));
    assert_eq!(world.runs.len(), runs);
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 10}))])]);
    world.run(seconds(5));
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
}

#[test]
fn probes_that_make_no_sense_are_unknown_and_say_why_and_others_run() {
    let mut world = node();
    let broken = |name: &str, probe: Value| json!({"name": name, "containerName": "app", "probe": probe});
    world.ask(&[
        json!({}),
        pod(
            "a",
            &[
                broken("m#grpc", json!({"grpc": {"port": 1}})),
                broken("m#port", json!({"tcpSocket": {"port": "web"}})),
                broken("nothing", Value::Null),
                exec("m#idle", "idle", &json!({})),
                exec("m#idle", "second", &json!({})),
            ],
        ),
        pod("a", &[exec("m#idle", "third", &json!({}))]),
    ]);
    world.run(seconds(5));
    assert_eq!(
        world.says("a", "m#grpc"),
        "Unknown the probe cannot be run: it has no command, httpGet or tcpSocket"
    );
    assert_eq!(
        world.says("a", "m#port"),
        "Unknown the probe cannot be run: its port \"web\" is not known"
    );
    assert!(
        world
            .says("a", "nothing")
            .starts_with("Unknown the probe cannot be run: it cannot be read")
    );
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
    assert_eq!(world.told(), ["KruiseProbeSucceeded "]);
    let writes = world.patches.len();
    world.run(seconds(60));
    assert_eq!(world.patches.len(), writes);
}

#[test]
fn answers_without_a_question_change_nothing() {
    let mut world = probed();
    for event in [
        Event::ProbeEnded {
            run: RunId(99),
            result: fails("no"),
        },
        Event::ProbesWritten(Err(WriteError::Conflict)),
        Event::ProbedContainersListed(Err(Failure::Failed("what".into()))),
    ] {
        world.schedule(seconds(0), event);
    }
    world.run(seconds(60));
    assert_eq!(
        (world.says("a", "m#idle").as_str(), world.patches.len()),
        ("Succeeded", 1)
    );
}
