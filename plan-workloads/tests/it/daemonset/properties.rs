//! Random scenarios: edits, nodes that come and go, faults and half-executed plans, judged at every write by
//! arithmetic that is not the planner's.

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::{Explain, Intent, ObjectWrites, Plan, Write};
use kruise_plan_test_kit::{condition, merge, node_of};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::World;

/// Longest way to rest: six nodes one by one, through hooks and `minReadySeconds`.
const ROUNDS: usize = 300;

#[derive(Clone, Debug)]
enum Event {
    Image(u8),
    Environment(u8),
    Rolling(&'static str, Value),
    Spec(Value),
    /// A node, its disk, its type, its taint.
    Join(u8, bool, bool, u8),
    Leave(u8),
    UserDeletes(u8),
    Evict(u8),
    Crash(u8),
    Recover(u8),
    Unhook(u8),
    Work,
    WorkOne(u8),
    /// Plans, and executes the part of the plan that these bits choose.
    Plan(u32),
    Pass(u8),
}

fn amount() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(1),
        json!(2),
        json!(4),
        json!("30%"),
        json!("50%"),
        json!("100%"),
    ])
}

fn event() -> impl Strategy<Value = Event> {
    let changes = prop_oneof![
        4 => (0..4u8).prop_map(Event::Image),
        1 => (0..3u8).prop_map(Event::Environment),
        2 => amount().prop_map(|value| Event::Rolling("partition", value)),
        1 => Just(Event::Rolling("partition", json!(0))),
        1 => any::<bool>().prop_map(|value| Event::Rolling("paused", json!(value))),
        1 => prop::sample::select(vec![Value::Null, json!({"matchLabels": {"type": "canary"}})])
            .prop_map(|value| Event::Rolling("selector", value)),
        1 => (0..3u8).prop_map(|n| Event::Spec(json!({"minReadySeconds": n * 6}))),
        1 => (1..4u8).prop_map(|n| Event::Spec(json!({"burstReplicas": n}))),
        1 => any::<bool>().prop_map(|value| Event::Spec(json!({"scaleStrategy": {"partitionedScaling": value}}))),
    ];
    let nodes = prop_oneof![
        3 => (0..6u8, any::<bool>(), any::<bool>(), 0..6u8).prop_map(|(n, disk, kind, taint)| Event::Join(n, disk, kind, taint)),
        1 => (0..6u8).prop_map(Event::Leave),
    ];
    let faults = prop_oneof![
        1 => any::<u8>().prop_map(Event::UserDeletes),
        1 => any::<u8>().prop_map(Event::Evict),
        1 => any::<u8>().prop_map(Event::Crash),
        1 => any::<u8>().prop_map(Event::Recover),
        1 => any::<u8>().prop_map(Event::Unhook),
    ];
    prop_oneof![
        3 => changes,
        2 => nodes,
        2 => faults,
        4 => Just(Event::Work),
        2 => any::<u8>().prop_map(Event::WorkOne),
        2 => (1..15u8).prop_map(Event::Pass),
        2 => any::<u32>().prop_map(Event::Plan),
        5 => Just(Event::Plan(u32::MAX)),
    ]
}

fn start() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec!["Standard", "InPlaceIfPossible", "Surge", "OnDelete"]);
    (kinds, amount(), any::<bool>(), any::<bool>(), 0..3u8).prop_map(|(kind, limit, hooked, in_parts, ready)| {
        let rolling = match kind {
            "Surge" => json!({"rollingUpdateType": "Standard", "maxSurge": limit, "maxUnavailable": 0}),
            kind => json!({"rollingUpdateType": kind, "maxUnavailable": limit, "maxSurge": 0}),
        };
        let update = if kind == "OnDelete" {
            json!({"type": "OnDelete"})
        } else {
            json!({"type": "RollingUpdate", "rollingUpdate": rolling})
        };
        let mut labels = json!({"app": "agent"});
        let mut spec = json!({
            "selector": {"matchLabels": {"app": "agent"}}, "minReadySeconds": ready * 6, "updateStrategy": update,
            "scaleStrategy": {"partitionedScaling": in_parts},
        });
        if hooked {
            labels["hold"] = json!("yes");
            spec["lifecycle"] = json!({"preDelete": {"labelsHandler": {"hold": "yes"}}});
        }
        spec["template"] = json!({"metadata": {"labels": labels}, "spec": {
            "nodeSelector": {"disk": "ssd"},
            "containers": [{"name": "main", "image": "agent:0", "env": [{"name": "MODE", "value": "0"}]}]}});
        spec
    })
}

// ---- What the oracle knows of the world. None of it is asked of the planner.

fn rolling(world: &World) -> &Value {
    &world.set["spec"]["updateStrategy"]["rollingUpdate"]
}

fn is_eligible(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().unwrap();
    node["metadata"]["labels"]["disk"] == "ssd" && taints.is_empty()
}

fn may_stay(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().unwrap();
    node["metadata"]["labels"]["disk"] == "ssd" && taints.iter().all(|taint| taint["effect"] != "NoExecute")
}

fn eligible(world: &World) -> Vec<&str> {
    let nodes = world.nodes.iter().filter(|(_, node)| is_eligible(node));
    nodes.map(|(name, _)| name.as_str()).collect()
}

fn is_living(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null() && pod["status"]["phase"] != "Failed"
}

fn is_prepared(pod: &Value) -> bool {
    pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] == "PreparingDelete"
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready") == Some("True") && condition(pod, "InPlaceUpdateReady") != Some("False")
}

fn is_available(world: &World, pod: &Value) -> bool {
    let needed = world.set["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
    let ready = pod["status"]["conditions"].as_array().and_then(|all| {
        all.iter()
            .find(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    });
    let since: Option<Timestamp> =
        ready.map(|ready| ready["lastTransitionTime"].as_str().unwrap().parse().unwrap());
    is_living(pod)
        && !is_prepared(pod)
        && is_ready(pod)
        && since.is_some_and(|since| world.now >= since + SignedDuration::from_secs(needed))
}

/// The image and the variable say which template a pod is of.
fn is_new(world: &World, pod: &Value) -> bool {
    let of = |spec: &Value| {
        let container = &spec["containers"][0];
        (container["image"].clone(), container["env"].clone())
    };
    of(&pod["spec"]) == of(&world.set["spec"]["template"]["spec"])
}

fn on<'w>(world: &'w World, node: &str) -> Vec<&'w Value> {
    let pods = world.pods.values();
    pods.filter(|pod| node_of(pod) == Some(node)).collect()
}

fn share(value: &Value, of: usize, up: bool) -> i64 {
    match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap();
            let exact = percent * of as i64;
            if up { (exact + 99) / 100 } else { exact / 100 }
        }
        number => number.as_i64().unwrap_or(0),
    }
}

fn surges(world: &World) -> bool {
    let surge = &rolling(world)["maxSurge"];
    surge.is_string() || surge.as_i64().unwrap_or(0) > 0
}

/// Nodes that should have a pod and lack an available one.
fn unserved(world: &World) -> i64 {
    let lacks = |node: &&str| !on(world, node).iter().any(|pod| is_available(world, pod));
    eligible(world).iter().filter(|node| lacks(node)).count() as i64
}

/// Judges a write before it is made.
fn judge(world: &World, write: &Write) {
    match write {
        Write::Create {
            intent: Intent::CREATE_POD,
            body,
            ..
        } => judge_creation(world, &body.render()),
        Write::Delete {
            intent: Intent::DELETE_POD,
            target,
            ..
        } => judge_leaving(world, &target.name, write),
        Write::Patch {
            intent: Intent::MARK_UNREADY | Intent::SET_LIFECYCLE,
            target,
            ..
        } => {
            judge_leaving(world, &target.name, write);
        }
        _ => {}
    }
}

fn judge_creation(world: &World, pod: &Value) {
    let node = node_of(pod).unwrap();
    assert!(
        world.nodes.get(node).is_some_and(is_eligible),
        "a pod for a node that should have none"
    );
    assert!(is_new(world, pod), "a pod of an older template");
    let there = on(world, node);
    let living: Vec<_> = there
        .iter()
        .filter(|pod| is_living(pod) && !is_prepared(pod))
        .collect();
    if surges(world) {
        assert!(
            living.iter().all(|pod| !is_new(world, pod)) && living.len() <= 1,
            "a second new pod"
        );
        if !living.is_empty() {
            assert!(
                rolling(world)["paused"] != true,
                "an update although it is paused"
            );
            let both = eligible(world)
                .iter()
                .filter(|node| {
                    let there = on(world, node);
                    let living = there.iter().filter(|pod| is_living(pod) && !is_prepared(pod));
                    let (new, old): (Vec<&Value>, Vec<&Value>) =
                        living.copied().partition(|pod| is_new(world, pod));
                    old.iter().any(|pod| is_ready(pod))
                        && !new.is_empty()
                        && !new.iter().any(|pod| is_available(world, pod))
                })
                .count() as i64;
            let limit = share(&rolling(world)["maxSurge"], eligible(world).len(), true);
            assert!(both < limit || !is_ready(living[0]), "more than maxSurge");
            judge_partition(world, node);
        }
    } else {
        assert!(there.is_empty(), "a second pod on node {node}");
    }
}

/// Judges what takes a pod away, or out of service.
fn judge_leaving(world: &World, name: &str, write: &Write) {
    let pod = &world.pods[name];
    let Some(node) = node_of(pod) else { return };
    let Some(stored) = world.nodes.get(node) else {
        assert!(
            pod["spec"]["nodeName"].is_null(),
            "a pod of a lost node is left to be collected"
        );
        return;
    };
    let there = on(world, node);
    let others = there
        .iter()
        .any(|other| other["metadata"]["name"] != name && is_living(other));
    if !is_living(pod) || is_prepared(pod) || !may_stay(stored) {
        return;
    }
    if others {
        if surges(world) && is_ready(pod) && !is_new(world, pod) {
            let served = there
                .iter()
                .any(|other| is_new(world, other) && is_available(world, other));
            let olds = there
                .iter()
                .filter(|other| is_living(other) && !is_new(world, other))
                .count();
            assert!(
                served || olds > 1,
                "an old Ready pod goes before its successor is available"
            );
        }
        return;
    }
    assert!(
        is_eligible(stored),
        "deleted for an update, and cannot come back: {write}"
    );
    assert!(!is_new(world, pod), "a new pod goes: {write}");
    assert!(
        world.set["spec"]["updateStrategy"]["type"] != "OnDelete",
        "an update with OnDelete"
    );
    assert!(
        rolling(world)["paused"] != true,
        "an update although it is paused"
    );
    let selector = &rolling(world)["selector"]["matchLabels"]["type"];
    assert!(
        selector.is_null() || stored["metadata"]["labels"]["type"] == *selector,
        "an update on a node that is not selected"
    );
    judge_partition(world, node);
    if is_available(world, pod) {
        let limit = share(&rolling(world)["maxUnavailable"], eligible(world).len(), true).max(1);
        assert!(unserved(world) < limit, "more than maxUnavailable: {write}");
    }
}

/// May one more node lose its old pod?
fn judge_partition(world: &World, node: &str) {
    let nodes = eligible(world);
    let kept = share(&rolling(world)["partition"], nodes.len(), false);
    let is_old_only = |node: &str| {
        let there = on(world, node);
        let mut living = there.iter().filter(|pod| is_living(pod) && !is_prepared(pod));
        living.clone().next().is_some() && living.all(|pod| !is_new(world, pod))
    };
    let moved = nodes
        .iter()
        .filter(|other| **other != node && !is_old_only(other))
        .count() as i64;
    assert!(moved < nodes.len() as i64 - kept, "the partition keeps this node");
}

// ---- The scenario.

fn pick(world: &World, n: u8) -> Option<String> {
    let names: Vec<&String> = world.pods.keys().collect();
    (!names.is_empty()).then(|| names[usize::from(n) % names.len()].clone())
}

fn happen(world: &mut World, event: &Event) {
    let with = |world: &mut World, n: u8, act: &dyn Fn(&mut World, &str)| {
        if let Some(name) = pick(world, n) {
            act(world, &name);
        }
    };
    match event {
        Event::Image(n) => {
            let image = json!(format!("agent:{n}"));
            world.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = image);
        }
        Event::Environment(n) => {
            let value = json!(n.to_string());
            world.edit(|spec| spec["template"]["spec"]["containers"][0]["env"][0]["value"] = value);
        }
        Event::Rolling(key, value) => world.edit(|spec| {
            if let Some(rolling) = spec["updateStrategy"]["rollingUpdate"].as_object_mut() {
                rolling.insert((*key).to_owned(), value.clone());
            }
        }),
        Event::Spec(change) => world.edit(|spec| merge(spec, change)),
        Event::Join(n, ssd, canary, taint) => {
            let disk = if *ssd || *n < 3 { "ssd" } else { "hdd" };
            let kind = if *canary { "canary" } else { "plain" };
            let taints = match taint {
                0 => json!([{"key": "gpu", "effect": "NoSchedule"}]),
                1 => json!([{"key": "gpu", "effect": "NoExecute"}]),
                _ => json!([]),
            };
            world.join(&format!("n{n}"), json!({"disk": disk, "type": kind}), taints);
        }
        Event::Leave(n) => {
            let name = format!("n{n}");
            world.nodes.remove(&name);
            // Pods that were bound to it are collected.
            world
                .pods
                .retain(|_, pod| pod["spec"]["nodeName"].as_str() != Some(&name));
        }
        Event::UserDeletes(n) => with(world, *n, &|world, name| drop(world.pods.remove(name))),
        Event::Evict(n) => with(world, *n, &|world, name| world.evict(name)),
        Event::Crash(n) => with(world, *n, &|world, name| world.crash(name)),
        Event::Recover(n) => with(world, *n, &|world, name| world.recover(name)),
        Event::Unhook(n) => with(world, *n, &unhook),
        Event::Work => work(world),
        Event::WorkOne(n) => with(world, *n, &|world, name| world.work(&[name.to_owned()])),
        Event::Plan(bits) => {
            let plan = world.plan(Explain::No);
            execute(world, &plan, *bits);
        }
        Event::Pass(seconds) => world.pass(i64::from(*seconds)),
    }
}

fn unhook(world: &mut World, name: &str) {
    world.touch(name, |pod, _, _| {
        pod["metadata"]["labels"].as_object_mut().unwrap().remove("hold");
    });
}

fn work(world: &mut World) {
    let names: Vec<String> = world.pods.keys().cloned().collect();
    world.work(&names);
}

/// Executes the objects that the bits choose, in the order of phases; a failed revision ends it.
fn execute(world: &mut World, plan: &Plan, bits: u32) {
    let mut writes: Vec<(usize, &ObjectWrites)> = plan.writes.iter().enumerate().collect();
    writes.sort_by_key(|(_, object)| object.phase);
    for (index, object) in writes {
        if bits >> (index % 32) & 1 == 0 && object.phase != kruise_plan_kit::Phase::Revisions {
            continue;
        }
        let mut previous = None;
        for step in &object.steps {
            judge(world, &step.write);
            let done = world.apply(&step.write, &mut previous);
            assert_eq!(done, Ok(()), "{}", step.write);
        }
    }
    world.report(plan);
}

/// Everything is done that comes by itself, until nothing is left to do.
fn settle(world: &mut World) {
    for _ in 0..ROUNDS {
        let names: Vec<String> = world.pods.keys().cloned().collect();
        for name in &names {
            unhook(world, name);
            world.recover(name);
        }
        work(world);
        let plan = world.plan(Explain::No);
        if plan.writes.is_empty() && plan.requeue.is_none() {
            world.report(&plan);
            return;
        }
        execute(world, &plan, u32::MAX);
        let wait = plan.requeue.map_or(0, |wait| wait.as_secs() + 1);
        world.pass(i64::try_from(wait).unwrap());
    }
    panic!(
        "not at rest after {ROUNDS} rounds: {:#?}",
        world.plan(Explain::Yes)
    );
}

fn assert_rest(world: &World) {
    let nodes = eligible(world);
    let kept = share(&rolling(world)["partition"], nodes.len(), false);
    let in_parts = world.set["spec"]["scaleStrategy"]["partitionedScaling"] == true;
    let rolls = world.set["spec"]["updateStrategy"]["type"] != "OnDelete";
    let (mut empty, mut new) = (0, 0);
    for node in &nodes {
        let there = on(world, node);
        match there.as_slice() {
            [] => empty += 1,
            [pod] => new += i64::from(is_new(world, pod)),
            more => panic!("{} pods on node {node}", more.len()),
        }
    }
    assert!(
        empty == 0 || (in_parts && rolls && empty <= kept),
        "{empty} nodes have no pod"
    );
    for (name, node) in &world.nodes {
        assert!(
            may_stay(node) || on(world, name).is_empty(),
            "a pod where none may be: {name}"
        );
    }
    let selects = !rolling(world)["selector"].is_null();
    if rolls && rolling(world)["paused"] != true && !selects {
        assert!(
            new >= nodes.len() as i64 - kept,
            "{new} of {} nodes are updated",
            nodes.len()
        );
    }
    let status = &world.set["status"];
    assert_eq!(status["desiredNumberScheduled"], nodes.len(), "{status}");
    assert_eq!(status["updatedNumberScheduled"], new, "{status}");
    assert_eq!(
        status["currentNumberScheduled"],
        nodes.len() - usize::try_from(empty).unwrap(),
        "{status}"
    );
}

fn play(spec: Value, events: &[Event]) {
    let mut world = World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap());
    for name in ["n0", "n1", "n2", "n3"] {
        world.join(name, json!({"disk": "ssd", "type": "plain"}), json!([]));
    }
    for event in events {
        happen(&mut world, event);
    }
    settle(&mut world);
    assert_rest(&world);
    let again = world.plan(Explain::No);
    assert!(again.writes.is_empty() && again.status.is_none(), "{again:#?}");
    let mut pods = world.pod_views();
    pods.reverse();
    assert_eq!(
        world.plan(Explain::No),
        world.plan_of(&pods, Explain::No),
        "the order of pods decides nothing"
    );
}

#[test]
fn every_write_keeps_one_pod_a_node_and_the_limits_and_every_scenario_comes_to_rest() {
    proptest!(ProptestConfig::with_cases(300), |(spec in start(), events in prop::collection::vec(event(), 5..60))| {
        play(spec, &events);
    });
}
