//! Random scenarios: nodes join, leave and are tainted, pods end, users edit the job, pause it and delete pods.
//! Each plan is judged by what the requirements say of its writes; when everybody is quiet the job has ended, and
//! nothing more is written.

use std::collections::BTreeSet;

use kruise_plan_kit::{Explain, Plan, ResourceId, Write};
use kruise_plan_test_kit::{node, node_of};
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};

use super::world::World;

const NODES: [&str; 5] = ["n1", "n2", "n3", "n4", "n5"];

#[derive(Clone, Debug)]
enum Step {
    /// A node joins, or has no taint any more.
    Join(Index),
    /// A node is to get no further pods, or is to keep none.
    Taint(Index, &'static str),
    /// A node is gone, with what ran there.
    Leave(Index),
    /// The scheduler and the nodes do their work.
    Work,
    /// A pod that runs ends.
    End(Index, &'static str),
    /// A user deletes a pod.
    Delete(Index),
    Edit(&'static str, Value),
    Pass(i64),
    Plan,
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    let effect = prop_oneof![Just("NoSchedule"), Just("NoExecute")];
    let phase = prop_oneof![3 => Just("Succeeded"), 1 => Just("Failed")];
    let policy = prop_oneof![Just("FailFast"), Just("Continue"), Just("Pause")];
    prop_oneof![
        3 => index().prop_map(Step::Join),
        1 => (index(), effect).prop_map(|(node, effect)| Step::Taint(node, effect)),
        1 => index().prop_map(Step::Leave),
        3 => Just(Step::Work),
        3 => (index(), phase).prop_map(|(pod, phase)| Step::End(pod, phase)),
        1 => index().prop_map(Step::Delete),
        1 => (1..5_i32).prop_map(|most| Step::Edit("parallelism", json!(most))),
        1 => any::<bool>().prop_map(|paused| Step::Edit("paused", json!(paused))),
        1 => policy.prop_map(|policy| Step::Edit("failurePolicy", json!({"type": policy}))),
        1 => (1..200_i64).prop_map(Step::Pass),
        6 => Just(Step::Plan),
    ]
}

fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn is_going(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

/// The condition that says that the job has ended, if the status has one.
fn end(world: &World) -> Option<&Value> {
    let is_end = |condition: &&Value| {
        let kind = condition["type"].as_str();
        condition["status"] == "True" && matches!(kind, Some("Complete" | "Failed"))
    };
    world.set["status"]["conditions"].as_array()?.iter().find(is_end)
}

/// The taint of a node; `None` if there is no such node.
fn taint<'w>(world: &'w World, node: &str) -> Option<&'w Value> {
    Some(&world.nodes.get(node)?["spec"]["taints"][0]["effect"])
}

fn takes_pods(world: &World, node: &str) -> bool {
    taint(world, node).is_some_and(Value::is_null)
}

/// May a pod not stay, or not come, where it is to run?
fn is_refused(world: &World, pod: &Value) -> bool {
    let node = node_of(pod).unwrap();
    if pod["spec"]["nodeName"].is_null() {
        return !takes_pods(world, node);
    }
    taint(world, node).is_none_or(|effect| effect == "NoExecute")
}

fn judge(world: &World, plan: &Plan) {
    let (mut given, mut deleted) = (BTreeSet::new(), BTreeSet::new());
    for step in plan.writes.iter().flat_map(|object| &object.steps) {
        match &step.write {
            Write::Create { target, body, .. } if target.resource == ResourceId::PODS => {
                let pod = body.render();
                let node = node_of(&pod).unwrap();
                let here = |pod: &Value| node_of(pod) == Some(node);
                assert!(!world.pods.values().any(here), "a second pod of {node}");
                assert!(takes_pods(world, node), "{node} takes no pods");
                assert!(given.insert(node.to_owned()), "two pods for {node}");
            }
            Write::Delete { target, .. } if target.resource == ResourceId::PODS => {
                let pod = &world.pods[&target.name];
                assert!(!has_ended(pod), "the result of {} is lost", target.name);
                let reason = end(world).is_some() || is_refused(world, pod);
                assert!(reason, "{} is deleted without a reason", target.name);
                deleted.insert(target.name.clone());
            }
            _ => {}
        }
    }
    if given.is_empty() {
        return;
    }
    let spec = &world.set["spec"];
    let pods = world.pods.iter().filter(|(name, _)| !deleted.contains(*name));
    let active = pods.filter(|(_, pod)| !has_ended(pod) && !is_going(pod)).count();
    let most = usize::try_from(spec["parallelism"].as_i64().unwrap()).unwrap();
    assert!(
        active + given.len() <= most,
        "{active} and {given:?}, {most} allowed"
    );
    assert_ne!(spec["paused"], true, "a paused job creates nothing");
    assert_eq!(end(world), None, "a job that has ended creates nothing");
    let has_failed = |pod: &Value| pod["status"]["phase"] == "Failed" && !is_going(pod);
    let fails_fast = spec["failurePolicy"]["type"] == "FailFast" && world.pods.values().any(has_failed);
    assert!(!fails_fast, "a job that fails creates nothing");
}

/// Plans once. Returns whether something was written.
fn reconcile(world: &mut World) -> bool {
    let plan = world.plan(Explain::No);
    judge(world, &plan);
    let before = end(world).cloned();
    world.execute(&plan);
    let after = end(world).map(|condition| condition["type"].as_str().unwrap());
    match (&before, after) {
        (Some(_), _) => assert_eq!(end(world), before.as_ref(), "an end is final"),
        (None, Some("Complete")) => {
            let is_done = |pod: &Value| has_ended(pod) || is_going(pod);
            for node in world.nodes.keys().filter(|node| takes_pods(world, node)) {
                let mut here = world
                    .pods
                    .values()
                    .filter(|pod| node_of(pod) == Some(node.as_str()));
                assert!(here.any(is_done), "complete, and {node} has not run");
            }
        }
        (None, Some(_)) => {
            let mut pods = world.pods.values();
            assert!(
                pods.any(|pod| pod["status"]["phase"] == "Failed"),
                "failed without a failed pod"
            );
        }
        (None, None) => {}
    }
    !plan.writes.is_empty() || plan.status.is_some()
}

fn work(world: &mut World) {
    let names: Vec<String> = world.pods.keys().cloned().collect();
    world.work(&names);
}

/// Ends a pod that runs.
fn finish(world: &mut World, name: &str, phase: &str) {
    world.touch(name, |pod, _, _| {
        if pod["status"]["phase"] == "Running" {
            pod["status"]["phase"] = json!(phase);
        }
    });
}

fn happen(world: &mut World, step: &Step) {
    let name_of = |world: &World, index: &Index| {
        let names: Vec<String> = world.pods.keys().cloned().collect();
        (!names.is_empty()).then(|| index.get(&names).clone())
    };
    match step {
        Step::Join(index) => {
            let name: &&str = index.get(&NODES);
            world.nodes.extend([node(name)]);
        }
        Step::Taint(index, effect) => {
            let name = *index.get(&NODES);
            if world.nodes.contains_key(name) {
                world.nodes.extend([node(&format!("{name} taint=away:{effect}"))]);
            }
        }
        Step::Leave(index) => {
            let name = *index.get(&NODES);
            world.nodes.remove(name);
            world.pods.retain(|_, pod| pod["spec"]["nodeName"] != name);
        }
        Step::Work => work(world),
        Step::End(index, phase) => {
            if let Some(name) = name_of(world, index) {
                finish(world, &name, phase);
            }
        }
        Step::Delete(index) => {
            if let Some(name) = name_of(world, index) {
                world.touch(&name, |pod, now, _| {
                    pod["metadata"]["deletionTimestamp"] = json!(now.to_string());
                });
            }
        }
        Step::Edit(member, value) => world.edit(|spec| spec[*member] = value.clone()),
        Step::Pass(seconds) => world.pass(*seconds),
        Step::Plan => {
            reconcile(world);
        }
    }
}

/// Nothing disturbs the job any more: it comes to its end, and nothing of it runs.
fn come_to_rest(world: &mut World) {
    world.edit(|spec| {
        spec["paused"] = json!(false);
        spec["failurePolicy"] = json!({"type": "Continue"});
    });
    let names: Vec<String> = world.nodes.keys().cloned().collect();
    world.nodes.extend(names.iter().map(|name| node(name)));
    let mut idle = 0;
    for _ in 0..60 {
        idle = if reconcile(world) { 0 } else { idle + 1 };
        if idle > 2 {
            break;
        }
        work(world);
        let pods: Vec<String> = world.pods.keys().cloned().collect();
        for name in &pods {
            finish(world, name, "Succeeded");
        }
        // A pod that was kept off its node is created again after a while.
        world.pass(600);
    }
    assert!(idle > 2, "it never rests: {:#?}", world.pods);
    if names.is_empty() {
        assert!(world.pods.values().all(|pod| has_ended(pod) || is_going(pod)));
        return;
    }
    assert!(end(world).is_some(), "it has no end: {}", world.set["status"]);
    assert!(
        world.pods.values().all(has_ended),
        "something runs: {:#?}",
        world.pods
    );
    let on: BTreeSet<&str> = world.pods.values().filter_map(node_of).collect();
    assert_eq!(on.len(), world.pods.len(), "two pods of one node");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_node_has_one_pod_an_end_is_final_and_every_scenario_comes_to_it(steps in vec(step(), 1..60)) {
        let template = json!({"metadata": {"labels": {"app": "check"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "check:1"}]}});
        let spec = json!({"parallelism": 3, "completionPolicy": {"type": "Always"},
            "failurePolicy": {"type": "FailFast"}, "template": template});
        let mut world = World::new(spec, "2026-01-01T01:00:00Z".parse().unwrap());
        world.nodes.extend(["n1", "n2"].map(node));
        for step in &steps {
            happen(&mut world, step);
        }
        come_to_rest(&mut world);
    }
}
