//! Random histories: a workload is scaled, its pods come, move, become Ready and go, nodes come and go, in any
//! order with the controller. A record changes only for a Ready pod, and is forgotten only for one that is gone and
//! out of range; when everybody is quiet, exactly what is to be recorded is, and nothing more is written.

use kruise_plan_kit::Explain;
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};

use crate::world::{HOST, World, ZONE};

const NODES: [&str; 4] = ["a1", "a2", "b1", "bare"];
const PODS: [&str; 5] = ["broker-0", "broker-1", "broker-2", "broker-3", "broker-x"];

#[derive(Clone, Debug)]
enum Step {
    Scale(i32),
    /// A pod comes, or the one of that name is scheduled and becomes Ready or not.
    Run(Index, Index, bool),
    Pending(Index),
    Terminate(Index),
    Gone(Index),
    RemoveNode(Index),
    Node(Index, bool),
    Policy(bool),
    Keys(bool),
    Annotate(Index, u8),
    Plan,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<Index>;
    let step = prop_oneof![
        2 => (0..5).prop_map(Step::Scale),
        5 => (index(), index(), any::<bool>()).prop_map(|(pod, node, ready)| Step::Run(pod, node, ready)),
        2 => index().prop_map(Step::Pending),
        2 => index().prop_map(Step::Terminate),
        2 => index().prop_map(Step::Gone),
        1 => index().prop_map(Step::RemoveNode),
        1 => (index(), any::<bool>()).prop_map(|(node, zone)| Step::Node(node, zone)),
        1 => any::<bool>().prop_map(Step::Policy),
        1 => any::<bool>().prop_map(Step::Keys),
        1 => (index(), 0_u8..3).prop_map(|(pod, value)| Step::Annotate(pod, value)),
        6 => Just(Step::Plan),
    ];
    vec(step, 1..60)
}

fn happen(world: &mut World, step: &Step) {
    let pod = |index: &Index| *index.get(&PODS);
    let node = |index: &Index| *index.get(&NODES);
    match step {
        Step::Scale(replicas) => world.scale("broker", *replicas),
        Step::Run(name, place, is_ready) => {
            if !world.has_pod(pod(name)) {
                world.pod("broker", pod(name));
            }
            world.run(pod(name), node(place), *is_ready);
        }
        Step::Pending(name) => world.pod("broker", pod(name)),
        Step::Terminate(name) if world.has_pod(pod(name)) => world.terminate(pod(name)),
        Step::Gone(name) => world.remove_pod(pod(name)),
        Step::RemoveNode(place) => world.remove_node(node(place)),
        Step::Node(place, has_zone) => world.node(node(place), has_zone.then_some("z")),
        Step::Policy(keeps) => {
            let policy = if *keeps { "WhenDeleted" } else { "WhenScaled" };
            let change = json!({"spec": {"persistentPodStateRetentionPolicy": policy}});
            world.edit("broker", &change);
        }
        Step::Keys(required) => {
            let keys = if *required { json!([ZONE]) } else { json!([]) };
            world.edit(
                "broker",
                &json!({"spec": {"requiredPersistentTopology": {"keys": keys}}}),
            );
        }
        Step::Annotate(name, value) if world.has_pod(pod(name)) => {
            let value = value.to_string();
            let change = json!({"metadata": {"annotations": {"ip": value}}});
            world.edit_pod(pod(name), &change);
        }
        Step::Terminate(_) | Step::Annotate(..) => {}
        Step::Plan => reconcile(world),
    }
}

/// Is the pod Ready on a node, and neither ended nor ending? Its node.
fn ready_on(world: &World, name: &str) -> Option<String> {
    let pod = world.pod_json(name)?;
    let is_ready = pod["status"]["conditions"][0]["status"] == "True";
    let is_ending = !pod["metadata"]["deletionTimestamp"].is_null();
    let node = pod["spec"]["nodeName"].as_str()?;
    (is_ready && !is_ending).then(|| node.to_owned())
}

fn is_in_range(world: &World, name: &str) -> bool {
    let number = name
        .rsplit_once('-')
        .and_then(|(_, number)| number.parse::<i64>().ok());
    number.is_none_or(|number| number < world.replicas("broker"))
}

/// One plan, whose report is judged.
fn reconcile(world: &mut World) {
    let states = |world: &World| -> serde_json::Map<String, Value> {
        let states = world.states["broker"]["status"]["podStates"].as_object();
        states.cloned().unwrap_or_default()
    };
    let before = states(world);
    let keeps = world.states["broker"]["spec"]["persistentPodStateRetentionPolicy"] == "WhenDeleted";
    let plan = world.plan("broker", Explain::No);
    world.execute("broker", plan);
    let after = states(world);
    for (name, record) in &before {
        match after.get(name) {
            None => assert!(
                !keeps && !world.has_pod(name) && !is_in_range(world, name),
                "{name} is forgotten"
            ),
            Some(now) if now != record => assert!(ready_on(world, name).is_some(), "{name} is not Ready"),
            Some(_) => {}
        }
    }
    for (name, record) in &after {
        if before.get(name) != Some(record) {
            assert_eq!(
                record["nodeName"].as_str(),
                ready_on(world, name).as_deref(),
                "{name}"
            );
        }
    }
}

/// What is recorded when everybody is quiet.
fn judge(world: &World) {
    for name in world.pod_names() {
        let Some(node) = ready_on(world, &name) else {
            continue;
        };
        let Some(labels) = world.labels_of(&node) else {
            continue;
        };
        let record = world.record("broker", &name);
        assert_eq!(record["nodeName"], *node);
        assert_eq!(record["nodeTopologyLabels"][HOST], labels[HOST]);
        let requires = world.states["broker"]["spec"]["requiredPersistentTopology"]["keys"] == json!([ZONE]);
        if !requires {
            assert_eq!(record["nodeTopologyLabels"][ZONE], Value::Null);
        } else if !labels[ZONE].is_null() {
            assert_eq!(record["nodeTopologyLabels"][ZONE], labels[ZONE]);
        }
        let annotations = &world.pod_json(&name).unwrap()["metadata"]["annotations"];
        assert_eq!(record["annotations"]["ip"], annotations["ip"]);
    }
    let keeps = world.states["broker"]["spec"]["persistentPodStateRetentionPolicy"] == "WhenDeleted";
    for name in world
        .recorded("broker")
        .split(' ')
        .filter(|name| !name.is_empty())
    {
        assert!(
            keeps || world.has_pod(name) || is_in_range(world, name),
            "{name} is left"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn records_follow_ready_pods_and_outlive_all_others_while_they_may_come_back(steps in steps()) {
        let mut world = World::new();
        world.workload("apps", "broker", &json!({"replicas": 3}));
        let keys = json!({"spec": {"persistentPodAnnotations": [{"key": "ip"}]}});
        world.state("broker", "broker", &keys);
        for step in &steps {
            happen(&mut world, step);
        }
        for _ in 0..4 {
            reconcile(&mut world);
        }
        judge(&world);
        let reports = world.reports.len();
        world.settle();
        prop_assert_eq!(world.reports.len(), reports);
        prop_assert!(world.written.is_empty());
    }
}
