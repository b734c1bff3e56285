//! Containers that end and are not started again by the kubelet: a request does not wait for their restart.

use serde_json::{Value, json};

use super::{
    WAITING, ask, hooks, is, newest, phase, replace, request, state, status, stopped, stops, with_hook,
    world, writes,
};
use crate::world::{World, millis, seconds};

const ENDED: &str = "The container has ended and is not started again";

/// A node that runs a pod of this restart policy.
fn with_policy(policy: &str) -> World {
    let mut world = world();
    world.put_pod("web", &json!({"spec": {"restartPolicy": policy}}));
    world
}

#[test]
fn s4_7_a_container_of_a_pod_that_never_restarts_counts_once_it_has_ended_and_the_next_request_begins() {
    for code in [0, 137] {
        let mut world = with_policy("Never");
        world.exit_code = code;
        ask(&mut world, "r", &["app"], &json!({}));
        world.run(millis(10));
        ask(&mut world, "s", &["log"], &json!({}));
        world.run(seconds(2));
        assert_eq!(state(&world, "r", "app"), is("Succeeded", ENDED, true));
        assert_eq!(
            (phase(&world, "r"), phase(&world, "s")),
            ("Completed".to_owned(), "Completed".to_owned())
        );
        assert_eq!(stopped(&world), ["app", "log"]);
        assert!(status(&world, "r")["completionTime"].is_string());
    }
}

#[test]
fn s4_7_where_failures_restart_only_a_container_that_ended_well_counts() {
    let mut world = with_policy("OnFailure");
    ask(&mut world, "r", &["app"], &json!({}));
    world.exit_code = 137;
    world.run(seconds(100));
    assert_eq!(state(&world, "r", "app"), is("Recreating", WAITING, true));
    replace(&mut world, "r", "app");
    world.run(seconds(1));
    assert_eq!(state(&world, "r", "app"), is("Succeeded", "", true));
    ask(&mut world, "s", &["log"], &json!({}));
    world.exit_code = 0;
    world.run(seconds(1));
    assert_eq!(state(&world, "s", "log"), is("Succeeded", ENDED, true));
    assert_eq!(phase(&world, "s"), "Completed");
}

#[test]
fn s4_7_one_that_ended_before_it_was_stopped_counts_too_and_one_that_has_yet_to_start_does_not() {
    let mut world = with_policy("Never");
    let containers = world.containers.get_mut("uid-web").unwrap();
    for one in &mut *containers {
        one.is_running = false;
    }
    // `log` is created and not started.
    containers[0].exit_code = Some(1);
    assert_eq!(&*containers[1].name, "log");
    ask(&mut world, "r", &["app", "log"], &json!({"forceRecreate": true}));
    world.run(seconds(20));
    assert_eq!(state(&world, "r", "app"), is("Succeeded", ENDED, false));
    assert_eq!(state(&world, "r", "log"), is("Recreating", WAITING, false));
    assert_eq!(
        (phase(&world, "r"), stopped(&world).len()),
        ("Recreating".to_owned(), 0)
    );
    assert!(!newest(&world, "log").is_running);
}

#[test]
fn e9_8_a_request_for_sidecars_of_a_pod_that_has_ended_runs_their_hooks_and_ends() {
    for (phase_of_pod, hook) in [("Running", true), ("Succeeded", true), ("Failed", false)] {
        let hook = if hook {
            json!({"exec": {"command": ["bye"]}})
        } else {
            Value::Null
        };
        let mut world = with_hook(&hook);
        world.exit_code = if phase_of_pod == "Running" { 0 } else { 137 };
        world.put_pod(
            "web",
            &json!({
                "spec": {"restartPolicy": "OnFailure"},
                "status": {"phase": phase_of_pod,
                    "conditions": [{"type": "SidecarTerminated", "status": "True"}]},
            }),
        );
        let strategy =
            json!({"forceRecreate": true, "failurePolicy": "Ignore", "terminationGracePeriodSeconds": 20});
        let sidecars = request(&world, &["app"], &strategy);
        world.put_request("sidecar-termination-uid-web", &sidecars);
        world.run(seconds(8));
        assert_eq!(
            hooks(&world).len(),
            usize::from(hook.is_object()),
            "{phase_of_pod}"
        );
        // The hook took four seconds.
        let grace = if hook.is_object() { 16 } else { 20 };
        assert_eq!(
            (stopped(&world), stops(&world)[0].2),
            (vec!["app".to_owned()], grace)
        );
        assert_eq!(
            phase(&world, "sidecar-termination-uid-web"),
            "Completed",
            "{phase_of_pod}"
        );
        assert_eq!(writes(&world), 2, "what is stopped, and the end");
    }
}

#[test]
fn where_everything_restarts_a_container_that_has_ended_is_waited_for() {
    let mut world = with_policy("Always");
    ask(&mut world, "r", &["app"], &json!({}));
    world.exit_code = 0;
    world.run(seconds(100));
    assert_eq!(state(&world, "r", "app"), is("Recreating", WAITING, true));
}

#[test]
fn a_container_that_is_removed_with_the_pod_that_is_over_counts_too() {
    for (policy, phase_of_pod, ends) in [
        ("Never", "Running", true),
        ("Always", "Failed", true),
        ("OnFailure", "Running", false),
    ] {
        let mut world = with_policy(policy);
        world.put_pod("web", &json!({"status": {"phase": phase_of_pod}}));
        world
            .containers
            .get_mut("uid-web")
            .unwrap()
            .retain(|one| &*one.name != "app");
        ask(&mut world, "r", &["app"], &json!({}));
        world.run(seconds(20));
        let (wanted, message) = if ends {
            ("Succeeded", ENDED)
        } else {
            ("Pending", "not found container on Node")
        };
        assert_eq!(
            state(&world, "r", "app"),
            is(wanted, message, false),
            "{policy} {phase_of_pod}"
        );
        assert_eq!(phase(&world, "r") == "Completed", ends);
    }
}
