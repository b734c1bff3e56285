//! Requests under faults: agents that are killed, runtimes and API servers that are away, pods that are gone.

use std::collections::BTreeSet;

use kruise_agent_core::{Event, Failure, Handler, Health, WriteError};
use serde_json::json;

use super::{
    WAITING, ask, container, hooks, is, newest, phase, replace, report, request, start, state, status,
    stopped, with_hook, world, writes,
};
use crate::world::{START, World, millis, seconds};

/// What kubelet and manager do all the time.
fn tend(world: &mut World, request: &str) {
    for name in ["app", "log"] {
        if !newest(world, name).is_running {
            start(world, name);
        }
    }
    if phase(world, request) == "Recreating" {
        let second = i64::try_from(world.now.as_nanosecond()).unwrap() - 1_000_000_000;
        let is_old = |name: &&str| newest(world, name).created <= second;
        let ready: Vec<&str> = ["app", "log"].into_iter().filter(is_old).collect();
        report(world, request, &ready);
    }
}

#[test]
fn s4_7_an_agent_that_is_killed_at_any_time_stops_each_container_once() {
    for strategy in [
        json!({}),
        json!({"forceRecreate": true}),
        json!({"orderedRecreate": true, "forceRecreate": true}),
        json!({"minStartedSeconds": 2, "forceRecreate": true}),
    ] {
        // Answers come every ten milliseconds.
        for crash in (5..2_500).step_by(10) {
            let mut world = world();
            ask(&mut world, "r", &["app", "log"], &strategy);
            let mut passed = 0;
            while passed < 20_000 && phase(&world, "r") != "Completed" {
                let step = if (passed..passed + 50).contains(&crash) {
                    world.run(millis(crash - passed));
                    world.restart();
                    50 - (crash - passed)
                } else {
                    50
                };
                world.run(millis(step));
                tend(&mut world, "r");
                passed += 50;
            }
            assert_eq!(phase(&world, "r"), "Completed", "{strategy} {crash}");
            for name in ["app", "log"] {
                assert_eq!(
                    state(&world, "r", name),
                    is("Succeeded", "", true),
                    "{strategy} {crash}"
                );
            }
            // The call may be made again for a container that has not ended yet; its successor is left alone.
            let all: BTreeSet<String> = stopped(&world).into_iter().collect();
            assert_eq!(all, ["app", "log"].map(String::from).into(), "{strategy} {crash}");
        }
    }
}

#[test]
fn s4_7_an_agent_that_starts_while_a_hook_runs_stops_the_container_after_all() {
    let mut world = with_hook(&json!({"sleep": {"seconds": 20}}));
    ask(&mut world, "r", &["app"], &json!({"forceRecreate": true}));
    world.run(seconds(5));
    assert_eq!(stopped(&world).len(), 0);
    world.restart();
    world.run(seconds(30));
    assert_eq!(stopped(&world), ["app"]);
    assert_eq!(state(&world, "r", "app"), is("Recreating", WAITING, true));
}

#[test]
fn a_request_that_was_ended_meanwhile_stops_nothing() {
    let mut world = world();
    world.watch_delay = seconds(5);
    ask(&mut world, "r", &["app"], &json!({}));
    world.run(millis(4_900));
    // The agent learns of the request, and of its end five seconds later.
    let message = "recreating has exceeded the activeDeadlineSeconds";
    let end = json!({"phase": "Completed", "completionTime": world.now.to_string(), "message": message});
    world.put_request("r", &json!({"status": end}));
    world.run(seconds(60));
    assert_eq!(stopped(&world).len(), 0);
    assert_eq!(
        (phase(&world, "r"), &status(&world, "r")["message"]),
        ("Completed".to_owned(), &json!(message))
    );
}

#[test]
fn s7_12_8_containers_of_a_runtime_that_the_node_does_not_have_end_the_request() {
    for (ids, problem) in [
        (
            ["docker://app", "docker://log"],
            r#"the node has no container runtime "docker""#,
        ),
        (
            ["docker://app", "containerd://log"],
            "the containers have several: containerd, docker",
        ),
        (["app", "log"], r#"the node has no container runtime """#),
    ] {
        let mut world = world();
        let mut request = request(&world, &["app", "log"], &json!({}));
        for (at, id) in ids.into_iter().enumerate() {
            request["spec"]["containers"][at]["statusContext"]["containerID"] = id.into();
        }
        world.put_request("r", &request);
        world.run(seconds(1));
        assert_eq!(phase(&world, "r"), "Completed");
        let message = format!("failed to find runtime service: {problem}");
        assert_eq!(status(&world, "r")["message"], message);
        assert!(status(&world, "r")["completionTime"].is_string());
    }
}

#[test]
fn s4_9_2_while_the_runtime_is_away_a_request_says_so_and_then_runs() {
    let mut world = world();
    world.is_up = false;
    world.inject(Event::RuntimeLost("connection refused".into()));
    ask(&mut world, "r", &["app"], &json!({}));
    world.run(seconds(60));
    assert!(matches!(world.health(), Health::Degraded(_)));
    let message = "the container runtime is not available: connection refused";
    assert_eq!(
        (phase(&world, "r"), &status(&world, "r")["message"]),
        ("Pending".to_owned(), &json!(message))
    );
    world.is_up = true;
    world.run(seconds(40));
    assert_eq!(
        (phase(&world, "r"), stopped(&world)),
        ("Recreating".to_owned(), vec!["app".to_owned()])
    );
}

#[test]
fn a_runtime_that_vanishes_during_a_stop_is_called_again() {
    let mut world = world();
    world.stop_error = Some(Failure::Unavailable("connection reset".into()));
    ask(&mut world, "r", &["app"], &json!({}));
    world.run(millis(100));
    world.stop_error = None;
    world.run(seconds(10));
    assert_eq!(stopped(&world), ["app", "app"]);
    assert_eq!(state(&world, "r", "app"), is("Recreating", WAITING, true));
}

#[test]
fn nothing_is_stopped_of_a_pod_that_is_gone_or_ends() {
    let mut gone = world();
    gone.pods.clear();
    let mut successor = world();
    successor.pods.get_mut("web").unwrap()["metadata"]["uid"] = "uid-2".into();
    let mut ending = world();
    ending.pods.get_mut("web").unwrap()["metadata"]["deletionTimestamp"] = START.into();
    for mut world in [gone, successor, ending] {
        ask(&mut world, "r", &["app"], &json!({}));
        world.run(seconds(60));
        assert_eq!(
            (stopped(&world).len(), writes(&world), world.agent.next_timer()),
            (0, 0, None)
        );
    }
}

#[test]
fn where_the_pod_cannot_be_read_the_hook_of_the_request_runs() {
    let mut world = world();
    world.are_pods_unreadable = true;
    let mut request = request(&world, &["app"], &json!({}));
    request["spec"]["containers"][0]["preStop"] = json!({"exec": {"command": ["bye"]}});
    world.put_request("r", &request);
    world.run(seconds(60));
    assert_eq!(hooks(&world), [Handler::Exec(["bye".into()].into())]);
    assert_eq!(stopped(&world), ["app"]);
}

#[test]
fn a_hook_without_an_address_is_an_event_and_the_container_is_stopped() {
    let mut world = with_hook(&json!({"httpGet": {"port": 80}}));
    world.pods.get_mut("web").unwrap()["status"] = json!({});
    ask(&mut world, "r", &["app"], &json!({}));
    world.run(seconds(1));
    let message = "FailedPreStopHook PreStop hook failed: its pod has no address";
    assert_eq!(
        (world.messages()[1].as_str(), stopped(&world).len()),
        (message, 1)
    );
}

#[test]
fn s7_5_a_container_that_the_runtime_does_not_have_is_waited_for() {
    let mut world = world();
    world.containers.clear();
    ask(&mut world, "r", &["app"], &json!({}));
    world.run(seconds(30));
    assert_eq!(
        state(&world, "r", "app"),
        is("Pending", "not found container on Node", false)
    );
    assert_eq!(writes(&world), 1);
    let before = container("app", "app", world.now);
    world.containers.insert("uid-web".into(), vec![before]);
    world.run(seconds(15));
    assert_eq!(stopped(&world), ["app"]);
}

#[test]
fn s4_7_what_the_agent_of_openkruise_has_begun_goes_on() {
    for (states, stops, force) in [
        // It was killed before it stopped the container.
        (json!([{"name": "app", "phase": "Pending"}]), 1, false),
        // It has stopped it, and the kubelet has started the next one.
        (
            json!([{"name": "app", "phase": "Recreating", "isKilled": true}]),
            0,
            true,
        ),
        (
            json!([{"name": "app", "phase": "Recreating", "isKilled": true}]),
            0,
            false,
        ),
        (
            json!([{"name": "app", "phase": "Failed", "message": "kill container error: x"}]),
            0,
            true,
        ),
    ] {
        let mut world = world();
        let mut request = request(
            &world,
            &["app"],
            &json!({"forceRecreate": force, "failurePolicy": "Fail"}),
        );
        if stops == 0 {
            world.containers.get_mut("uid-web").unwrap()[0].is_running = false;
            start(&mut world, "app");
        }
        request["status"] = json!({"phase": "Recreating", "containerRecreateStates": states});
        world.put_request("r", &request);
        world.run(seconds(1));
        report(&mut world, "r", &["app"]);
        world.run(seconds(1));
        assert_eq!(stopped(&world).len(), stops, "{states}");
        assert_eq!(
            phase(&world, "r"),
            if stops == 0 { "Completed" } else { "Recreating" },
            "{states}"
        );
    }
}

#[test]
fn requests_of_other_nodes_and_those_that_are_over_are_left_alone() {
    let mut world = world();
    let other = request(&world, &["app"], &json!({}));
    for (name, patch) in [
        (
            "elsewhere",
            json!({"metadata": {"labels": {"crr.apps.kruise.io/node-name": "n2"}}}),
        ),
        (
            "inactive",
            json!({"metadata": {"labels": {"crr.apps.kruise.io/active": "false"}}}),
        ),
        ("deleting", json!({"metadata": {"deletionTimestamp": START}})),
        (
            "ended",
            json!({"status": {"phase": "Completed", "completionTime": START}}),
        ),
    ] {
        world.put_request(name, &other);
        world.put_request(name, &patch);
    }
    // Only the last state of each is seen.
    world.restart();
    world.run(seconds(60));
    assert_eq!((stopped(&world).len(), writes(&world)), (0, 0));
    assert_eq!(world.agent.next_timer(), None);
}

#[test]
fn what_cannot_be_written_is_written_later_and_nothing_is_stopped_before() {
    let mut world = world();
    world.api_error = Some(WriteError::Failed("time out".into()));
    ask(&mut world, "r", &["app"], &json!({}));
    world.run(seconds(10));
    assert_eq!(stopped(&world).len(), 0);
    world.api_error = None;
    world.run(seconds(60));
    assert_eq!(stopped(&world), ["app"]);
}

#[test]
fn a_request_that_is_deleted_while_its_container_is_being_stopped_is_forgotten() {
    let mut world = with_hook(&json!({"sleep": {"seconds": 3}}));
    ask(&mut world, "r", &["app"], &json!({}));
    world.run(seconds(1));
    world.delete_request("r");
    world.run(seconds(60));
    assert_eq!(
        (stopped(&world), world.agent.next_timer()),
        (vec!["app".to_owned()], None)
    );
}

#[test]
fn a_container_that_another_request_still_stops_is_not_stopped_twice_at_a_time() {
    let mut world = with_hook(&json!({"exec": {"command": ["bye"]}}));
    ask(&mut world, "a", &["app"], &json!({}));
    world.run(seconds(1));
    ask(&mut world, "b", &["app"], &json!({"forceRecreate": true}));
    world.put_request(
        "a",
        &json!({"status": {"phase": "Completed", "completionTime": world.now.to_string()}}),
    );
    world.run(seconds(2));
    assert_eq!((hooks(&world).len(), stopped(&world).len()), (1, 0));
    world.run(seconds(20));
    assert_eq!(
        (hooks(&world).len(), stopped(&world)),
        (1, vec!["app".to_owned()])
    );
    replace(&mut world, "b", "app");
    world.run(seconds(20));
    assert_eq!(stopped(&world), ["app", "app+"]);
}
