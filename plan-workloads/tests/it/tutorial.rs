//! The tutorial's rollout: five replicas, a surge of 20 %, nobody out of service, partition 3 and then 0. Every
//! step counts as it should.

use kruise_plan_test_kit::condition;
use kruise_plan_workloads::cloneset::Explain;
use serde_json::{Value, json};

use crate::world::World;

/// Old and new pods that are not on their way out.
type Counts = (usize, usize);

fn world(policy: &str) -> World {
    let spec = json!({
        "replicas": 5, "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": policy, "partition": 3, "maxSurge": "20%", "maxUnavailable": 0}},
        "template": {"metadata": {"labels": {"app": "web"}},
                     "spec": {"containers": [{"name": "main", "image": "web:1"}]}},
    });
    World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap())
}

fn active(world: &World) -> impl Iterator<Item = &Value> {
    let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
    world.pods.values().filter(stays)
}

fn counts(world: &World) -> Counts {
    let new = world.set["status"]["updateRevision"].clone();
    let is_new = |pod: &&Value| pod["metadata"]["labels"]["controller-revision-hash"] == new;
    let updated = active(world).filter(is_new).count();
    (active(world).count() - updated, updated)
}

/// Executes plans, with the nodes at work in between, until nothing changes; returns the counts on the way.
fn run(world: &mut World) -> Vec<Counts> {
    let mut seen = Vec::new();
    for _ in 0..100 {
        let plan = world.plan_of(&world.pod_views(), Explain::No);
        let (pods, status) = (world.pods.clone(), plan.status.clone());
        for object in &plan.writes {
            let mut previous = None;
            for step in &object.steps {
                world.apply(&step.write, &mut previous).unwrap();
            }
        }
        world.report(&plan);
        if seen.last() != Some(&counts(world)) {
            seen.push(counts(world));
        }
        let names: Vec<String> = world.pods.keys().cloned().collect();
        for name in &names {
            world.bind(name, "a1");
            world.kubelet(name);
            world.terminate(name);
        }
        world.pass(1);
        if pods == world.pods && status.is_none() {
            return seen;
        }
        let ready = active(world).filter(|pod| condition(pod, "Ready") == Some("True"));
        let started = seen.len() > 1;
        assert!(!started || ready.count() >= 5, "fewer than five serve: {seen:?}");
    }
    panic!("it does not come to rest: {seen:?}");
}

#[test]
fn each_step_of_a_surge_with_a_partition_counts_as_it_should() {
    let mut world = world("ReCreate");
    run(&mut world);
    world.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("web:2"));
    let held = run(&mut world);
    assert_eq!(held, [(5, 1), (4, 1), (4, 2), (3, 2)]);
    let status = world.set["status"].clone();
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(
        [
            &status["expectedUpdatedReplicas"],
            &status["updatedReadyReplicas"]
        ],
        [2, 2]
    );

    world.edit(|spec| spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(0));
    let finished = run(&mut world);
    let expected = [(3, 3), (2, 3), (2, 4), (1, 4), (1, 5), (0, 5)];
    assert_eq!(finished, expected);
    assert_eq!(
        world.set["status"]["currentRevision"],
        world.set["status"]["updateRevision"]
    );
}

#[test]
fn in_place_a_surge_makes_room_once_and_pods_keep_their_names() {
    let mut world = world("InPlaceIfPossible");
    world.edit(|spec| spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(0));
    run(&mut world);
    let before: Vec<String> = world.pods.keys().cloned().collect();
    world.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("web:2"));
    let most = run(&mut world).into_iter().map(|(old, new)| old + new).max();
    assert_eq!(most, Some(6));
    let kept = active(&world).filter(|pod| before.iter().any(|name| pod["metadata"]["name"] == **name));
    assert_eq!(kept.count(), 4, "one was taken for the one that made room");
}
