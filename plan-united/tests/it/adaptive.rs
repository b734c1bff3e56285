//! Subsets that cannot take pods.

use std::time::Duration;

use jiff::SignedDuration;
use kruise_api::uniteddeployment::Child;
use kruise_plan_kit::Explain;
use serde_json::{Value, json};

use crate::world::World;

/// Subsets with these most pods; `null` is unlimited.
fn adaptive(replicas: i32, most: &[Value], strategy: &Value, impossible: &[&str]) -> World {
    let names = ["a", "b", "c", "d"];
    let subsets: Value = names
        .iter()
        .zip(most)
        .map(|(name, most)| match most {
            Value::Null => json!({"name": name}),
            most => json!({"name": name, "maxReplicas": most}),
        })
        .collect();
    let mut world = World::new(Child::CloneSet, replicas, &subsets);
    world.edit(|spec| {
        spec["topology"]["scheduleStrategy"] = json!({"type": "Adaptive", "adaptive": strategy});
    });
    world.impossible = impossible.iter().map(|name| (*name).to_owned()).collect();
    world.settle();
    world
}

fn scaled(world: &mut World, replicas: i32) -> String {
    world.scale(replicas);
    world.settle();
    world.sizes()
}

#[test]
fn pods_move_from_a_subset_that_cannot_take_them_and_it_is_tried_again_later() {
    let seconds = json!({"rescheduleCriticalSeconds": 10, "unschedulableDuration": 10});
    let mut world = adaptive(3, &[json!(2), json!(2), Value::Null], &seconds, &["b"]);
    assert_eq!(world.sizes(), "a=2 b=1 c=0");
    world.pass(9);
    assert_eq!(
        world.sizes(),
        "a=2 b=1 c=0",
        "pods may be pending for ten seconds"
    );
    world.pass(2);
    assert_eq!(world.sizes(), "a=2 b=0 c=1");
    assert_eq!(
        world.schedulable("b"),
        "False reschedule timeout pending pods found"
    );
    assert_eq!(scaled(&mut world, 5), "a=2 b=0 c=3");
    assert_eq!(scaled(&mut world, 4), "a=2 b=0 c=2");
    world.pass(11);
    let condition = world.schedulable("b");
    assert!(
        condition.starts_with("True recover unschedulable subset recovered after 1"),
        "{condition}"
    );
    assert_eq!(
        world.sizes(),
        "a=2 b=0 c=2",
        "after the recovery nothing comes back until a scale"
    );
    assert_eq!(scaled(&mut world, 5), "a=2 b=1 c=2");
    assert_eq!(scaled(&mut world, 4), "a=2 b=0 c=2");
    assert!(!world.reconcile());
}

#[test]
fn the_least_of_a_subset_stays_although_it_is_pending() {
    let seconds = json!({"rescheduleCriticalSeconds": 10, "unschedulableDuration": 10});
    let mut world = adaptive(3, &[json!(2), Value::Null], &seconds, &["a"]);
    world.edit(|spec| spec["topology"]["subsets"][0]["minReplicas"] = json!(1));
    world.pass(12);
    assert_eq!(world.sizes(), "a=1 b=2");
    for _ in 0..3 {
        world.pass(11);
        assert!(world.schedulable("a").starts_with("False reschedule"));
        assert_eq!(world.sizes(), "a=1 b=2");
    }
}

fn reserving(subsets: usize, replicas: i32, strategy: &Value, impossible: &[&str]) -> World {
    let mut strategy = strategy.clone();
    strategy["reserveUnschedulablePods"] = json!(true);
    adaptive(replicas, &vec![Value::Null; subsets], &strategy, impossible)
}

fn seconds() -> Value {
    json!({"rescheduleCriticalSeconds": 20, "unschedulableDuration": 1})
}

#[test]
fn pending_pods_stay_and_others_run_until_they_are_healthy() {
    let mut world = reserving(3, 2, &seconds(), &["a", "b"]);
    assert_eq!(world.sizes(), "a=2 b=0 c=0");
    world.pass(60);
    assert_eq!(world.sizes(), "a=2 b=2 c=2");
    assert_eq!(world.labelled("true"), "a=2 b=2 c=0");
    assert_eq!(world.labelled("false"), "a=0 b=0 c=2");
    let status = world.status();
    assert_eq!(
        (&status["replicas"], &status["reservedPods"]),
        (&json!(2), &json!(4))
    );
    assert_eq!(
        status["labelSelector"],
        "app=api,apps.kruise.io/united-deployment-reserved-pod=false"
    );
    assert_eq!(world.schedulable("a"), "False reschedule reserved pods found");
    assert_eq!(world.schedulable("c"), "True reschedule no reserved pods");
    world.scale(4);
    world.pass(5);
    assert_eq!(world.sizes(), "a=2 b=2 c=4");
    world.image("api:2");
    world.pass(30);
    for (subset, images) in [
        ("a", "api:2 api:2"),
        ("b", "api:2 api:2"),
        ("c", "api:2 api:2 api:2 api:2"),
    ] {
        assert_eq!(world.images(subset), images, "the update reaches all pods");
    }
    world.impossible.remove("a");
    world.pass(30);
    assert_eq!(world.sizes(), "a=4 b=0 c=0");
    assert_eq!(world.labelled("true"), "a=0");
    assert_eq!(world.status()["reservedPods"], Value::Null);
    assert!(!world.reconcile());
}

#[test]
fn the_least_of_subsets_is_reserved_too() {
    let mut world = reserving(3, 2, &seconds(), &["a", "b"]);
    world.edit(|spec| {
        for index in 0..3 {
            spec["topology"]["subsets"][index]["minReplicas"] = json!(i32::from(index < 2));
        }
    });
    let mut fresh = world.clone();
    fresh.workloads.clear();
    fresh.pods.clear();
    fresh.united.as_object_mut().unwrap().remove("status");
    fresh.revisions.clear();
    fresh.settle();
    // Without most replicas, the first subset takes all that the second need not have.
    assert_eq!(fresh.sizes(), "a=1 b=1 c=0");
    fresh.pass(60);
    assert_eq!(fresh.sizes(), "a=1 b=1 c=2");
    fresh.impossible.remove("a");
    fresh.scale(4);
    fresh.pass(60);
    assert_eq!(fresh.sizes(), "a=4 b=1 c=0");
}

#[test]
fn a_subset_with_reserved_pods_may_update_all_that_are_not_ready() {
    let mut world = reserving(2, 2, &seconds(), &["a"]);
    world.pass(30);
    let max = "/spec/updateStrategy/rollingUpdate/maxUnavailable";
    assert_eq!(world.workload("a").pointer(max), Some(&json!(2)));
    assert_eq!(world.workload("b").pointer(max), None);
    world.impossible.clear();
    world.pass(30);
    assert_eq!(
        world.workload("a").pointer(max),
        None,
        "what the template says holds again"
    );
    assert!(!world.reconcile());
}

#[test]
fn pods_that_a_partition_keeps_are_not_reserved() {
    let mut world = reserving(1, 3, &seconds(), &[]);
    world.edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 2}));
    world.image("api:2");
    world.pass(60);
    assert_eq!(world.images("a"), "api:1 api:1 api:2");
    assert_eq!(
        (world.labelled("true"), world.sizes()),
        ("a=0".into(), "a=3".into())
    );
}

#[test]
fn a_subset_that_is_added_begins_with_reserved_pods() {
    let mut world = reserving(1, 2, &seconds(), &[]);
    world.edit(|spec| {
        let subsets = spec["topology"]["subsets"].as_array_mut().unwrap();
        subsets.insert(0, json!({"name": "new"}));
    });
    world.reconcile();
    assert_eq!(
        world.schedulable("new"),
        "False created newly-created subsets in reservation strategy"
    );
    world.pass(10);
    assert_eq!(world.sizes(), "a=0 new=2");
    assert_eq!(world.labelled("true"), "new=0");
}

#[test]
fn an_entry_of_an_unknown_subset_and_a_lost_status_do_no_harm() {
    let mut world = reserving(2, 2, &seconds(), &["a"]);
    world.pass(30);
    world.united["status"] = json!({"currentRevision": "gone", "replicas": 0, "updatedReplicas": 0,
        "subsetStatuses": [{"name": "unknown", "replicas": 7}]});
    world.pass(30);
    assert_eq!(world.sizes(), "a=2 b=2");
    assert_eq!(world.status()["subsetStatuses"].as_array().unwrap().len(), 2);
}

#[test]
fn without_a_duration_a_subset_is_not_looked_at_without_pause() {
    for (seconds, reserves) in [(0, false), (-5, false), (0, true), (-5, true)] {
        let strategy = json!({"rescheduleCriticalSeconds": 10, "unschedulableDuration": seconds,
            "reserveUnschedulablePods": reserves});
        let mut world = adaptive(3, &[json!(2), json!(2), Value::Null], &strategy, &["b"]);
        world.now += SignedDuration::from_secs(11);
        let mut plans = 0;
        loop {
            let plan = world.plan(Explain::No);
            let again = plan.requeue.unwrap_or(Duration::MAX);
            assert!(again >= Duration::from_secs(1), "{again:?}");
            plans += 1;
            if plans == 20 || !(world.execute(plan) | world.run_workloads()) {
                break;
            }
        }
        assert!(plans < 20, "it never comes to rest");
    }
}
