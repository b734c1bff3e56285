//! Scenarios of probes. Kubelet and manager are played by the tests.

mod faults;
mod histories;
mod world;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kruise_agent_core::{About, Handler};
use serde_json::{Value, json};

use crate::world::{millis, seconds};
use world::{World, exec, fails, pod, succeeds, words};

/// A node with a pod whose container has run for long.
fn node() -> World {
    let mut world = World::new();
    world.begin("a", "app");
    world.run(seconds(100));
    world
}

#[test]
fn s5_8_1_a_command_that_succeeds_is_reported_and_one_that_fails_after_its_threshold() {
    let mut world = node();
    world.answers.insert("idle".into(), succeeds("2 players"));
    world.ask(&[pod(
        "a",
        &[exec(
            "m#idle",
            "idle",
            &json!({"periodSeconds": 10, "failureThreshold": 3}),
        )],
    )]);
    world.run(seconds(5));
    assert_eq!(world.says("a", "m#idle"), "Succeeded 2 players");
    let succeeded = world.state("a", "m#idle");
    assert_eq!(succeeded["lastProbeTime"], succeeded["lastTransitionTime"]);
    world.answers.insert("idle".into(), fails("busy"));
    world.run(seconds(20));
    assert_eq!(
        world.says("a", "m#idle"),
        "Succeeded 2 players",
        "it has failed twice"
    );
    world.run(seconds(10));
    assert_eq!(world.says("a", "m#idle"), "Failed busy");
    assert_ne!(
        world.state("a", "m#idle")["lastTransitionTime"],
        succeeded["lastTransitionTime"]
    );
    assert_eq!(world.patches.len(), 2);
    let told = ["KruiseProbeSucceeded 2 players", "KruiseProbeFailed busy"];
    assert_eq!(world.told(), told, "events say what has changed");
    let is_pod = matches!(&world.events[0].about, About::Pod { namespace, name, uid }
        if &**namespace == "shop" && &**name == "a" && &**uid == "uid-a");
    assert!(is_pod && world.events[0].component == "kruise-daemon-podprobe");
}

#[test]
fn s5_8_1_success_takes_as_many_runs_in_a_row_as_its_threshold_says() {
    let mut world = node();
    world.answers.insert("idle".into(), fails("busy"));
    world.ask(&[pod(
        "a",
        &[exec(
            "m#idle",
            "idle",
            &json!({"periodSeconds": 5, "successThreshold": 3}),
        )],
    )]);
    world.run(seconds(1));
    assert_eq!(world.says("a", "m#idle"), "Failed busy");
    for (answer, runs, says) in [
        (succeeds("ok"), 2, "Failed busy"),
        (fails("busy"), 1, "Failed busy"),
        (succeeds("ok"), 2, "Failed busy"),
        (succeeds("ok"), 1, "Succeeded ok"),
    ] {
        world.answers.insert("idle".into(), answer);
        world.run(seconds(5 * runs));
        assert_eq!(world.says("a", "m#idle"), says);
    }
}

#[test]
fn a_result_that_changes_nothing_but_its_message_is_reported_once_a_minute() {
    let mut world = node();
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 1}))])]);
    for number in 0..150 {
        world
            .answers
            .insert("idle".into(), succeeds(&format!("it is {number}")));
        world.run(seconds(1));
    }
    assert_eq!(world.patches.len(), 3, "at the start and after each minute");
    world.answers.insert("idle".into(), fails("it is late"));
    world.run(seconds(4));
    assert_eq!(
        world.says("a", "m#idle"),
        "Failed it is late",
        "another state does not wait"
    );
}

#[test]
fn s5_8_2_a_command_that_changes_begins_anew_and_new_pods_are_probed() {
    let mut world = node();
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 60}))])]);
    world.run(seconds(5));
    world.answers.insert("other".into(), fails("no"));
    world.takes = seconds(2);
    let now = world.now;
    let long = json!({"periodSeconds": 60, "timeoutSeconds": 5});
    world.ask(&[pod("a", &[exec("m#idle", "other", &long)])]);
    world.run(seconds(1));
    assert_eq!(
        world.says("a", "m#idle"),
        "Unknown",
        "the result was one of another command"
    );
    world.run(seconds(4));
    assert_eq!(world.says("a", "m#idle"), "Failed no");
    assert!(world.times("other", now)[0] < 0.1, "at once, not after a period");
    world.begin("b", "app");
    world.run(seconds(10));
    let probe = exec("m#idle", "other", &long);
    world.ask(&[pod("a", std::slice::from_ref(&probe)), pod("b", &[probe])]);
    world.run(seconds(5));
    assert_eq!(world.says("b", "m#idle"), "Failed no");
}

#[test]
fn a_period_that_changes_counts_from_then_on_and_keeps_the_result() {
    let mut world = node();
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 60}))])]);
    world.run(seconds(5));
    let now = world.now;
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 2}))])]);
    world.run(seconds(9));
    assert_eq!(world.times("idle", now).len(), 4);
    assert_eq!(
        (world.says("a", "m#idle").as_str(), world.patches.len()),
        ("Succeeded", 1)
    );
}

#[test]
fn s5_8_3_requests_and_connections_go_to_the_pod_and_a_port_that_is_corrected_counts() {
    let mut world = node();
    let probe = |name: &str, probe: Value| json!({"name": name, "containerName": "app", "probe": probe});
    world.answers.insert("81".into(), fails("connection refused"));
    world
        .answers
        .insert("/bad".into(), fails("HTTP probe failed with statuscode: 500"));
    let get = |path: &str| probe("m#get", json!({"httpGet": {"path": path, "port": 80}}));
    let connect = |port: u16| probe("m#connect", json!({"tcpSocket": {"port": port}}));
    world.ask(&[pod("a", &[get("/bad"), connect(81)])]);
    world.run(seconds(5));
    assert_eq!(
        world.says("a", "m#get"),
        "Failed HTTP probe failed with statuscode: 500"
    );
    assert_eq!(world.says("a", "m#connect"), "Failed connection refused");
    world.ask(&[pod("a", &[get("/good"), connect(80)])]);
    world.run(seconds(5));
    assert_eq!(world.says("a", "m#get"), "Succeeded");
    assert_eq!(world.says("a", "m#connect"), "Succeeded");
    let hosts = world.runs.iter().map(|(_, run)| match &run.handler {
        Handler::Http { host, .. } | Handler::Tcp { host, .. } => host.to_string(),
        Handler::Exec(_) => String::new(),
    });
    assert!(hosts.into_iter().all(|host| host == "10.0.0.9"));
}

#[test]
fn a_pod_without_an_address_is_probed_once_it_has_one_and_commands_do_not_wait() {
    let mut world = node();
    let probes = [
        exec("m#idle", "idle", &json!({})),
        json!({"name": "m#connect", "containerName": "app", "probe": {"tcpSocket": {"port": 80}}}),
    ];
    let mut without = pod("a", &probes);
    without["IP"] = "".into();
    world.ask(&[without]);
    world.run(seconds(10));
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
    assert_eq!(world.state("a", "m#connect"), Value::Null);
    world.ask(&[pod("a", &probes)]);
    world.run(seconds(3));
    assert_eq!(world.says("a", "m#connect"), "Succeeded");
}

#[test]
fn s5_8_4_two_probes_of_a_container_with_equal_answers_are_both_reported() {
    let mut world = node();
    let often = json!({"periodSeconds": 5});
    world.ask(&[pod(
        "a",
        &[exec("m#one", "one", &often), exec("m#two", "two", &often)],
    )]);
    world.run(seconds(5));
    assert_eq!(
        (world.says("a", "m#one"), world.says("a", "m#two")),
        ("Succeeded".into(), "Succeeded".into())
    );
    assert_eq!(world.patches.len(), 1, "in one write");
    assert_eq!(world.told().len(), 2);
}

#[test]
fn s5_8_5_a_probe_that_is_removed_is_cancelled_and_its_result_leaves() {
    let mut world = node();
    let (one, two) = (
        exec("m#one", "one", &json!({"timeoutSeconds": 60})),
        exec("m#two", "two", &json!({})),
    );
    world.ask(&[pod("a", &[one.clone(), two.clone()])]);
    world.run(seconds(5));
    world.takes = seconds(30);
    world.run(seconds(2));
    assert!(world.under_way().contains("one"));
    let now = world.now;
    world.ask(&[pod("a", &[two])]);
    world.run(millis(20));
    assert_eq!((world.under_way().contains("one"), world.cancelled), (false, 1));
    world.run(seconds(60));
    assert_eq!(world.times("one", now), Vec::<f64>::new());
    assert_eq!(world.state("a", "m#one"), Value::Null);
    assert_ne!(world.state("a", "m#two"), Value::Null);
}

#[test]
fn s5_8_6_after_the_last_probe_there_is_neither_a_result_nor_an_event() {
    let mut world = node();
    world.ask(&[pod(
        "a",
        &[
            exec("a#one", "one", &json!({})),
            exec("ba#one", "other", &json!({})),
        ],
    )]);
    world.run(seconds(5));
    world.ask(&[pod("a", &[exec("ba#one", "other", &json!({}))])]);
    world.run(seconds(5));
    assert_eq!(
        (
            world.says("a", "a#one").as_str(),
            world.says("a", "ba#one").as_str()
        ),
        ("", "Succeeded")
    );
    world.ask(&[]);
    world.run(seconds(5));
    assert_eq!(world.object["status"]["podProbeStatuses"], json!([]));
    let (events, runs, listings) = (world.events.len(), world.runs.len(), world.listings);
    world.answers.insert("one".into(), fails("no"));
    world.run(seconds(600));
    assert_eq!(
        (world.events.len(), world.runs.len(), world.listings),
        (events, runs, listings)
    );
}

#[test]
fn s6_8_2_a_pod_that_is_gone_takes_its_results_with_it_and_others_keep_theirs() {
    let mut world = node();
    world.begin("b", "app");
    world.run(seconds(10));
    let probe = [exec("m#idle", "idle", &json!({"periodSeconds": 5}))];
    world.ask(&[pod("a", &probe), pod("b", &probe)]);
    world.run(seconds(5));
    world.ask(&[pod("b", &probe)]);
    world.run(seconds(5));
    assert_eq!(
        (
            world.says("a", "m#idle").as_str(),
            world.says("b", "m#idle").as_str()
        ),
        ("", "Succeeded")
    );
    let operations = &world.patches.last().unwrap().1;
    assert_eq!(
        *operations,
        json!([
            {"op": "test", "path": "/metadata/uid", "value": world.object["metadata"]["uid"]},
            {"op": "test", "path": "/status/podProbeStatuses/0/uid", "value": "uid-a"},
            {"op": "remove", "path": "/status/podProbeStatuses/0"},
        ]),
        "the result of the other one is not sent again"
    );
}

#[test]
fn s6_8_4_a_container_that_begins_anew_is_unknown_until_it_was_probed() {
    let mut world = node();
    let probe = json!({"periodSeconds": 5, "initialDelaySeconds": 20});
    world.ask(&[pod("a", &[exec("m#idle", "idle", &probe)])]);
    world.run(seconds(5));
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
    let began = world.now;
    world.begin("a", "app");
    world.run(seconds(7));
    assert_eq!(world.says("a", "m#idle"), "Unknown");
    world.run(seconds(20));
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
    let first = world.times("idle", began)[0];
    assert!(
        (21.0..22.5).contains(&first),
        "20 s after the start, not after the creation: {first}"
    );
    assert_eq!(world.told(), ["KruiseProbeSucceeded ", "KruiseProbeSucceeded "]);
}

#[test]
fn a_container_that_does_not_run_has_failed_and_is_not_probed() {
    let mut world = node();
    world.ask(&[pod(
        "a",
        &[exec(
            "m#idle",
            "idle",
            &json!({"periodSeconds": 5, "failureThreshold": 3}),
        )],
    )]);
    world.run(seconds(3));
    world.end("a", "app");
    world.run(seconds(6));
    assert_eq!(world.says("a", "m#idle"), "Failed Container(app) is Non-running");
    let now = world.now;
    world.run(seconds(30));
    assert_eq!(world.times("idle", now), Vec::<f64>::new());
    assert_eq!(world.patches.len(), 2);
    world.containers.clear();
    world.run(seconds(30));
    assert_eq!(world.patches.len(), 2, "the kubelet has removed it");
}

#[test]
fn a_container_that_is_not_there_yet_has_no_result() {
    let mut world = World::new();
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 5}))])]);
    world.run(seconds(20));
    assert_eq!((world.patches.len(), world.runs.len()), (0, 0));
    world.begin("a", "app");
    world.run(seconds(7));
    assert_eq!(world.says("a", "m#idle"), "Succeeded");
}

#[test]
fn s6_9_4_results_of_many_pods_at_a_time_are_few_writes_and_none_follows_at_rest() {
    let mut world = World::new();
    let names: Vec<String> = (0..50).map(|number| format!("p{number}")).collect();
    for name in &names {
        world.begin(name, "app");
    }
    world.run(seconds(10));
    let probes = |name: &String| {
        pod(
            name,
            &[exec(
                "m#idle",
                &format!("idle {name}"),
                &json!({"periodSeconds": 5}),
            )],
        )
    };
    let pods: Vec<Value> = names.iter().map(probes).collect();
    world.ask(&pods);
    world.run(seconds(10));
    assert!(names.iter().all(|name| world.says(name, "m#idle") == "Succeeded"));
    assert!(world.patches.len() <= 3, "{}", world.patches.len());
    let (writes, listings) = (world.patches.len(), world.listings);
    world.run(seconds(600));
    assert_eq!(world.patches.len(), writes);
    assert!(world.listings - listings <= 601, "{}", world.listings - listings);
    world.answers.insert("idle p7".into(), fails("no"));
    world.run(seconds(10));
    let (_, patch) = world.patches.last().unwrap();
    assert_eq!(
        patch.as_array().unwrap().len(),
        3,
        "one of fifty is sent: {patch}"
    );
}

#[test]
fn no_more_commands_run_at_a_time_than_the_limit_and_all_have_their_turn() {
    let mut world = World::new();
    let names: Vec<String> = (0..50).map(|number| format!("p{number}")).collect();
    for name in &names {
        world.begin(name, "app");
    }
    world.run(seconds(10));
    world.takes = seconds(1);
    let slow = json!({"periodSeconds": 10, "timeoutSeconds": 5});
    let probes = |name: &String| pod(name, &[exec("m#idle", &format!("idle {name}"), &slow)]);
    let pods: Vec<Value> = names.iter().map(probes).collect();
    world.ask(&pods);
    world.run(seconds(8));
    assert_eq!(world.most_running, 16);
    assert!(names.iter().all(|name| world.says(name, "m#idle") == "Succeeded"));
}

#[test]
fn slow_commands_of_one_pod_leave_room_for_those_of_others() {
    let mut world = World::new();
    for name in ["slow", "other"] {
        world.begin(name, "app");
    }
    world.run(seconds(10));
    world.takes = seconds(1000);
    let lasting = json!({"periodSeconds": 10, "timeoutSeconds": 2000});
    let many: Vec<Value> = (0..20)
        .map(|number| exec(&format!("m#{number}"), &format!("idle {number}"), &lasting))
        .collect();
    let slow = pod("slow", &many);
    world.ask(std::slice::from_ref(&slow));
    world.run(seconds(30));
    assert_eq!(world.most_running, 4);
    world.takes = seconds(1);
    world.ask(&[
        slow,
        pod("other", &[exec("m#idle", "idle", &json!({"periodSeconds": 5}))]),
    ]);
    world.run(seconds(30));
    assert_eq!(world.says("other", "m#idle"), "Succeeded");
}

#[test]
fn messages_are_cut() {
    let mut world = node();
    world.answers.insert("idle".into(), succeeds(&"ä".repeat(1000)));
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({}))])]);
    world.run(seconds(5));
    assert_eq!(world.state("a", "m#idle")["message"], "ä".repeat(512));
}

#[test]
fn a_message_that_changes_is_written_without_an_event_and_the_state_keeps_its_time() {
    let mut world = node();
    world.answers.insert("idle".into(), succeeds("1"));
    world.ask(&[pod("a", &[exec("m#idle", "idle", &json!({"periodSeconds": 5}))])]);
    world.run(seconds(5));
    let before = world.state("a", "m#idle");
    world.answers.insert("idle".into(), succeeds("2"));
    world.run(seconds(60));
    let after = world.state("a", "m#idle");
    assert_eq!((&after["message"], world.told().len()), (&json!("2"), 1));
    assert_eq!(after["lastTransitionTime"], before["lastTransitionTime"]);
    assert_ne!(after["lastProbeTime"], before["lastProbeTime"]);
}

/// 110 pods with three requests and connections each, and ten commands, every second.
#[test]
fn a_full_node_runs_each_probe_once_in_its_period_lists_once_a_second_and_writes_nothing() {
    const PODS: usize = 110;
    const COMMANDS: usize = 10;
    let mut world = World::new();
    let probe = |name: &str, mut handler: Value| {
        handler["periodSeconds"] = 1.into();
        json!({"name": name, "containerName": "app", "probe": handler})
    };
    let pods: Vec<Value> = (0..PODS)
        .map(|number| {
            let name = format!("p{number}");
            world.begin(&name, "app");
            let mut probes = vec![
                probe("m#get", json!({"httpGet": {"path": "/", "port": 80}})),
                probe("m#connect", json!({"tcpSocket": {"port": 81}})),
                probe("m#other", json!({"tcpSocket": {"port": 82}})),
            ];
            if number < COMMANDS {
                probes.push(exec("m#idle", "idle", &json!({"periodSeconds": 1})));
            }
            pod(&name, &probes)
        })
        .collect();
    world.ask(&pods);
    world.run(seconds(10));
    for what in ["that came together", "after a start, which spreads them"] {
        let (runs, listings) = (world.runs.len(), world.listings);
        let (patches, events) = (world.patches.len(), world.events.len());
        world.run(seconds(60));
        let mut times: BTreeMap<_, Vec<Timestamp>> = BTreeMap::new();
        for (at, run) in &world.runs[runs..] {
            let probe = (run.container.id.clone(), words(&run.handler));
            times.entry(probe).or_default().push(*at);
        }
        let periods = 60;
        assert_eq!(times.len(), PODS * 3 + COMMANDS, "probes that run {what}");
        for (probe, times) in times {
            // One whose run is late belongs to the period before.
            assert!(
                times.len().abs_diff(periods) <= 1,
                "{} runs of {probe:?} {what}",
                times.len()
            );
            let gaps = times.windows(2).map(|pair| pair[1].duration_since(pair[0]));
            let longest = gaps.max().unwrap();
            assert!(
                longest < SignedDuration::from_secs(2),
                "{longest} without {probe:?} {what}"
            );
        }
        let listed = world.listings - listings;
        assert!(
            (periods / 3..=periods).contains(&listed),
            "{listed} listings {what}"
        );
        let written = (world.patches.len() - patches, world.events.len() - events);
        assert_eq!(written, (0, 0), "writes and events of probes {what}");
        world.restart();
        world.run(seconds(10));
    }
}
