//! Random histories, with arithmetic of their own.

use kruise_plan_kit::Explain;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::World;

/// The containers `dump` of a pod, and how their state is reported: empty if it is not.
fn held(pod: &Value) -> Option<String> {
    let containers = pod["spec"]["ephemeralContainers"].as_array()?;
    let own: Vec<&Value> = containers.iter().filter(|one| one["name"] == "dump").collect();
    assert!(own.len() <= 1, "a container twice: {pod}");
    own.first()?;
    let states = pod["status"]["ephemeralContainerStatuses"].as_array();
    let state = states.into_iter().flatten().find(|one| one["name"] == "dump");
    Some(state.map_or_else(String::new, |one| {
        one["state"].as_object().unwrap().keys().next().unwrap().clone()
    }))
}

proptest! {
    #[test]
    fn parallelism_and_replicas_hold_and_every_job_ends(
        pods in 1..7usize,
        replicas in proptest::option::of(0..8i32),
        parallelism in 1..4i32,
        moves in proptest::collection::vec((0..8usize, 0..7u8), 0..40),
    ) {
        let mut world = World::new();
        world.edit("spec", &json!({"replicas": replicas, "parallelism": parallelism}));
        for number in 0..pods {
            world.pod(&format!("p{number}"));
        }
        let limit = replicas.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap()).min(pods);
        let at_once = usize::try_from(parallelism).unwrap();
        // What the moves leave ends well.
        let rest = (0..pods * 2).map(|number| (number % pods, 5));
        for (place, what) in moves.into_iter().chain(rest) {
            let before: Vec<String> = world.pods.values().filter_map(held).collect();
            let has_ended = !world.job["status"]["completionTime"].is_null();
            let plan = world.plan(Explain::No);
            prop_assert!(!has_ended || plan.writes.is_empty(), "an ended job writes {:?}", plan.writes);
            world.execute(&plan);
            let held_now: Vec<String> = world.pods.values().filter_map(held).collect();
            let busy = held_now.iter().filter(|state| *state != "terminated").count();
            prop_assert!(busy <= at_once, "{busy} of {parallelism}");
            prop_assert!(held_now.len() <= limit, "{} of {limit}", held_now.len());
            // A place that is free is used at once.
            let free = before.iter().filter(|state| *state != "terminated").count() < at_once;
            prop_assert!(has_ended || !free || held_now.len() > before.len() || held_now.len() == limit);
            let name = format!("p{}", place % pods);
            let state = ["waits", "runs", "runs", "1", "unrunnable", "0", "0"][usize::from(what)];
            let is_open = held(&world.pods[&name]).is_some_and(|state| state != "terminated");
            // What has ended stays so; what cannot be run may yet run.
            if is_open && state != "unrunnable" {
                world.pod(&format!("{name} dump={state}"));
            }
            world.pass(1);
        }
        let plan = world.plan(Explain::No);
        world.execute(&plan);
        let status = &world.job["status"];
        prop_assert_eq!(status["completionTime"].is_null(), limit == 0, "{}", status);
        if limit > 0 {
            let all: i64 = ["succeeded", "failed"].iter().map(|name| status[name].as_i64().unwrap()).sum();
            prop_assert_eq!(all, i64::try_from(limit).unwrap());
            let phase = if status["failed"] == 0 { "Succeeded" } else { "Failed" };
            prop_assert_eq!(&status["phase"], phase);
        }
    }
}
