//! Subsets that cannot take pods.

use kruise_plan_kit::Explain;
use serde_json::{Value, json};

use crate::world::{World, subset};

fn adaptive(seconds: i32) -> World {
    let mut world = World::of_cloneset(3, json!([subset("a", json!(3)), subset("b", Value::Null)]));
    world.edit(&json!({"spec": {"scheduleStrategy": {"type": "Adaptive",
        "adaptive": {"rescheduleCriticalSeconds": seconds}}}}));
    world.settle();
    world
}

#[test]
fn pods_that_no_node_can_take_move_to_another_subset_which_is_tried_again_after_five_minutes() {
    let mut world = adaptive(5);
    assert_eq!(world.conditions(), "a True Sufficient, b True Sufficient");
    assert_eq!(world.create("web-0", &json!({})).unwrap(), "a");
    world.unschedulable("web-0");
    world.settle();
    let requeue = world.plan(Explain::No).requeue.unwrap();
    assert_eq!(requeue.as_secs(), 5, "exactly when it has waited for too long");
    world.pass(6);
    // The mark is stored before the pod is deleted: its successor must not come back to the subset.
    let plan = world.plan(Explain::No);
    assert!(plan.writes.is_empty() && plan.status.is_some());
    world.execute(plan);
    assert_eq!(world.conditions(), "a False PodUnschedulable, b True Sufficient");
    world.settle();
    assert!(world.written.contains(&"delete-pod web-0".to_owned()));
    for index in 1..4 {
        assert_eq!(world.create(&format!("web-{index}"), &json!({})).unwrap(), "b");
    }
    world.pass(293);
    world.settle();
    assert_eq!(world.conditions(), "a False PodUnschedulable, b True Sufficient");
    world.pass(2);
    world.pass(10);
    world.settle();
    assert_eq!(world.conditions(), "a True Sufficient, b True Sufficient");
    assert_eq!(world.events, ["RecoverSchedulable: subset a is tried again"]);
    assert_eq!(world.create("web-9", &json!({})).unwrap(), "a");
}

#[test]
fn with_a_fixed_strategy_pods_stay_pending_and_there_are_no_conditions() {
    let mut world = adaptive(5);
    world.edit(&json!({"spec": {"scheduleStrategy": {"type": "Fixed", "adaptive": null}}}));
    world.create("web-0", &json!({})).unwrap();
    world.unschedulable("web-0");
    world.pass(1000);
    world.settle();
    assert_eq!(world.conditions(), "");
    assert!(world.pods.contains_key("web-0"));
}

#[test]
fn pods_of_the_last_subset_have_nowhere_to_move() {
    let mut world = adaptive(5);
    for index in 0..4 {
        world.create(&format!("web-{index}"), &json!({})).unwrap();
    }
    assert_eq!(world.subset_of("web-3").unwrap(), "b");
    world.unschedulable("web-3");
    world.pass(1000);
    world.settle();
    assert!(world.pods.contains_key("web-3"));
    assert_eq!(world.conditions(), "a True Sufficient, b True Sufficient");
}

#[test]
fn pods_that_wait_for_something_else_stay() {
    let mut world = adaptive(5);
    for name in ["web-0", "web-1", "web-2"] {
        world.create(name, &json!({})).unwrap();
    }
    // The scheduler has not looked at the first, gates hold the second, and the third has a node.
    let gated = json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"});
    world.edit_pod("web-1", &json!({"status": {"conditions": [gated]}}));
    world.unschedulable("web-2");
    world.edit_pod("web-2", &json!({"spec": {"nodeName": "a1"}}));
    world.pass(100);
    world.settle();
    assert_eq!(world.pods.len(), 3);
    assert_eq!(world.conditions(), "a True Sufficient, b True Sufficient");
}

#[test]
fn a_pod_that_is_scheduled_at_the_last_moment_is_not_deleted() {
    let mut world = adaptive(5);
    world.create("web-0", &json!({})).unwrap();
    world.unschedulable("web-0");
    world.pass(6);
    let plan = world.plan(Explain::No);
    world.execute(plan);
    let deletion = world.plan(Explain::No);
    let guarded = format!("{:?}", deletion.writes);
    let version = world.pods["web-0"]["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        guarded.contains(&format!(
            "UidAndVersion(\"{}\", \"{version}\")",
            world.pods["web-0"]["metadata"]["uid"].as_str().unwrap()
        )),
        "{guarded}"
    );
}

#[test]
fn an_explanation_says_where_each_pod_is_and_what_waits() {
    let mut world = adaptive(30);
    world.create("web-0", &json!({})).unwrap();
    world.unschedulable("web-0");
    world.admit("web-1", &json!({})).unwrap();
    world.pod("web-2", &json!({}));
    let whole = world.why("");
    assert!(whole.contains("spreads the pods of CloneSet web"), "{whole}");
    assert!(
        whole.contains("subset a has 1 pods of 3 at most, 2 are missing; 1 are being created"),
        "{whole}"
    );
    assert!(
        whole.contains("subset b has 0 pods, and takes any number"),
        "{whole}"
    );
    assert_eq!(
        world.why("web-0"),
        "is in subset a of version versionIgnored; deletion cost 200: it stays longer the higher it is; waits for a node, and moves if it waits too long"
    );
    assert!(
        world.why("web-2").starts_with("is in no subset, and has no node"),
        "{}",
        world.why("web-2")
    );
}
