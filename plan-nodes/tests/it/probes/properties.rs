//! Random histories: whatever happened, in the end each node has exactly the probes that the markers ask for, and
//! pods are as the results say. The expectations are computed from the stored objects, not by the planner.

use std::collections::BTreeSet;

use kruise_plan_kit::{Explain, ResourceId};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{World, exec, idle};

const PPM: ResourceId = kruise_api::podprobemarker::RESOURCE;
const NODES: [&str; 2] = ["n1", "n2"];
const MARKERS: [&str; 3] = ["a", "ba", "a-b"];
const PODS: [&str; 4] = ["g-0", "g-1", "g-2", "g-3"];

#[derive(Clone, Debug)]
enum Event {
    Pod(usize, usize),
    Gone(usize),
    Label(usize, bool),
    Ends(usize),
    Marker(usize, bool),
    Deleted(usize),
    Probes(usize, bool),
    Report(usize, usize, bool),
    /// One controller acts, and no other one.
    Tidy(usize),
    Set(usize),
    Settle,
}

fn event() -> impl Strategy<Value = Event> {
    let (pod, marker, node) = (0..PODS.len(), 0..MARKERS.len(), 0..NODES.len());
    prop_oneof![
        (pod.clone(), node.clone()).prop_map(|(pod, node)| Event::Pod(pod, node)),
        pod.clone().prop_map(Event::Gone),
        (pod.clone(), any::<bool>()).prop_map(|(pod, on)| Event::Label(pod, on)),
        pod.clone().prop_map(Event::Ends),
        (marker.clone(), any::<bool>()).prop_map(|(marker, two)| Event::Marker(marker, two)),
        marker.clone().prop_map(Event::Deleted),
        (marker.clone(), any::<bool>()).prop_map(|(marker, two)| Event::Probes(marker, two)),
        (node.clone(), 0..6usize, any::<bool>()).prop_map(|(node, at, ok)| Event::Report(node, at, ok)),
        node.prop_map(Event::Tidy),
        marker.prop_map(Event::Set),
        Just(Event::Settle),
    ]
}

fn probes(two: bool) -> Value {
    if two {
        json!([exec("x", "c/x"), exec("y", "c/y")])
    } else {
        json!([exec("x", "c/x")])
    }
}

fn happen(world: &mut World, event: &Event) {
    let exists = |world: &World, name: &str| !world.the_pod(name).is_null();
    let is_stored = |world: &World, name: &str| !world.get(PPM, "games", name).is_null();
    match *event {
        Event::Pod(pod, node) => world.pod(PODS[pod], NODES[node]),
        Event::Gone(pod) if exists(world, PODS[pod]) => world.delete(ResourceId::PODS, "games", PODS[pod]),
        Event::Label(pod, on) if exists(world, PODS[pod]) => {
            let app = if on { "game" } else { "web" };
            world.edit_pod(PODS[pod], &json!({"metadata": {"labels": {"app": app}}}));
        }
        Event::Ends(pod) if exists(world, PODS[pod]) => {
            world.edit_pod(PODS[pod], &json!({"status": {"phase": "Succeeded"}}));
        }
        Event::Marker(marker, two) if !is_stored(world, MARKERS[marker]) => {
            world.marker(MARKERS[marker], &probes(two));
        }
        Event::Deleted(marker) if is_stored(world, MARKERS[marker]) => {
            world.delete(PPM, "games", MARKERS[marker]);
        }
        Event::Probes(marker, two) if is_stored(world, MARKERS[marker]) => {
            world.edit_marker(MARKERS[marker], &json!({"spec": {"probes": probes(two)}}));
        }
        Event::Report(node, at, ok) => {
            let listed = world.probes(NODES[node]);
            if let Some((pod, probe)) = listed.get(at).and_then(|line| line.split_once(' ')) {
                let state = if ok { "Succeeded" } else { "Failed" };
                world.report(NODES[node], pod, probe, state, "");
            }
        }
        Event::Tidy(node) => {
            let plan = world.plan_node(NODES[node]);
            world.execute(&plan);
        }
        Event::Set(marker) if is_stored(world, MARKERS[marker]) => {
            let plan = world.plan_marker("games", MARKERS[marker], Explain::No);
            world.execute(&plan);
        }
        Event::Settle => drop(world.settle()),
        _ => {}
    }
}

/// `node pod marker#probe` of each probe that there must be.
fn wanted(world: &World) -> BTreeSet<String> {
    let mut wanted = BTreeSet::new();
    for pod in PODS {
        let stored = world.the_pod(pod);
        if stored["metadata"]["labels"]["app"] != "game" || stored["status"]["phase"] != "Running" {
            continue;
        }
        for marker in MARKERS {
            let probes = world.get(PPM, "games", marker)["spec"]["probes"].as_array();
            for probe in probes.into_iter().flatten() {
                let (node, name) = (&stored["spec"]["nodeName"], &probe["name"]);
                wanted.insert(format!(
                    "{} {pod} {marker}#{}",
                    node.as_str().unwrap(),
                    name.as_str().unwrap()
                ));
            }
        }
    }
    wanted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn in_the_end_nodes_have_exactly_the_probes_that_markers_ask_for(events in prop::collection::vec(event(), 1..40)) {
        let mut world = World::new(&NODES);
        for event in &events {
            happen(&mut world, event);
        }
        world.settle();
        let found = NODES.iter().flat_map(|node| {
            world.probes(node).into_iter().map(move |line| format!("{node} {line}"))
        });
        let found: Vec<String> = found.collect();
        let unique: BTreeSet<String> = found.iter().cloned().collect();
        prop_assert_eq!(found.len(), unique.len());
        prop_assert_eq!(unique, wanted(&world));
        prop_assert!(world.settle().is_empty());
    }

    #[test]
    fn in_the_end_pods_are_as_the_last_result_says(states in prop::collection::vec(0..3usize, 1..8)) {
        let mut world = World::new(&["n1"]);
        world.pod("g-0", "n1");
        world.marker("a", &json!([idle()]));
        world.settle();
        for state in &states {
            let state = ["Succeeded", "Failed", "Unknown"][*state];
            world.report("n1", "g-0", "a#idle", state, "");
            world.settle();
        }
        let (marks, conditions) = world.marks("g-0");
        let last = states[states.len() - 1];
        let expected = [Some("idle"), Some("busy"), None][last];
        prop_assert_eq!(marks.get("game").map(String::as_str), expected);
        prop_assert_eq!(&*conditions["game.example/idle"], ["True", "False", "False"][last]);
        prop_assert_eq!(marks.contains_key("why"), last == 1);
    }
}
