//! Targets of all kinds, and what cannot be read.

use kruise_plan_kit::{Explain, spread::ListedKind, workloads::Known};
use serde_json::{Value, json};

use crate::world::{World, subset};

#[test]
fn a_percentage_of_the_members_that_a_filter_selects_is_resolved_by_its_paths() {
    let subsets = json!([subset("a", json!("25%")), subset("b", json!("75%"))]);
    let mut world = World::new("kubeflow.org/v1", "TFJob", 0, subsets);
    world.workload["spec"] = json!({"tfReplicaSpecs": {"Worker": {"replicas": 4}, "PS": {"replicas": 2}}});
    world.edit(
        &json!({"spec": {"targetFilter": {"selector": {"matchLabels": {"role": "worker"}},
        "replicasPathList": ["spec.tfReplicaSpecs.Worker.replicas"]}}}),
    );
    let role = |role: &str| json!({"metadata": {"labels": {"role": role}}});
    world.settle();
    assert_eq!(world.counts(), "a 0/1, b 0/3");
    assert_eq!(world.create("worker-0", &role("worker")).unwrap(), "a");
    assert_eq!(world.create("worker-1", &role("worker")).unwrap(), "b");
    world.pod("ps-0", &role("ps"));
    world.run("ps-0", "a1");
    world.settle();
    assert_eq!(world.counts(), "a 1/0, b 1/2");
    assert!(
        world.written.is_empty() && world.reads == 0,
        "other roles are not touched, and the kind reads no costs"
    );
}

#[test]
fn the_path_of_a_listed_kind_says_how_many_pods_it_wants() {
    let mut world = World::new(
        "example.com/v1",
        "Game",
        9,
        json!([subset("a", json!("50%")), subset("b", json!("50%"))]),
    );
    world.workload["spec"]["size"] = json!(4);
    world.listed = vec![ListedKind {
        group: "example.com".into(),
        version: "v1".into(),
        kind: "Game".into(),
        replicas_path: "spec.size".into(),
        sub_resources: Vec::new(),
    }];
    world.settle();
    assert_eq!(world.counts(), "a 0/2, b 0/2");
    assert!(
        world.plan(Explain::No).requeue.is_some(),
        "it goes on being asked for"
    );
}

#[test]
fn a_path_that_leads_nowhere_is_reported_and_the_status_stays() {
    let mut world = World::of_cloneset(4, json!([subset("a", json!("50%")), subset("b", json!("50%"))]));
    world.settle();
    let before = world.spread["status"].clone();
    world.edit(&json!({"spec": {"targetFilter": {"replicasPathList": ["spec.none"]}}}));
    world.settle();
    assert_eq!(world.spread["status"], before);
    assert_eq!(
        world.events,
        ["InvalidSpec: pods are not counted: the target has no number at spec.none"]
    );
}

#[test]
fn a_limit_that_cannot_be_resolved_is_reported_and_the_status_stays() {
    let mut world = World::of_cloneset(2, json!([subset("a", json!(2)), subset("b", Value::Null)]));
    world.settle();
    world.create("web-0", &json!({})).unwrap();
    let before = world.spread["status"].clone();
    world.edit(&json!({"spec": {"subsets": [subset("a", json!("30")), subset("b", Value::Null)]}}));
    world.settle();
    assert_eq!(world.spread["status"], before);
    assert!(world.written.is_empty());
    assert!(
        world.events[0].starts_with("InvalidSpec: pods are not counted: maxReplicas of subset a"),
        "{:?}",
        world.events
    );
}

#[test]
fn half_of_the_pods_of_a_job_go_to_one_subset_and_those_that_ended_count_no_more() {
    let mut world = World::new(
        "batch/v1",
        "Job",
        4,
        json!([subset("a", json!("50%")), subset("b", Value::Null)]),
    );
    world.settle();
    let chosen: Vec<String> = (0..4)
        .map(|index| world.create(&format!("job-{index}"), &json!({})).unwrap())
        .collect();
    assert_eq!(chosen, ["a", "a", "b", "b"]);
    world.settle();
    assert_eq!(world.counts(), "a 2/0, b 2/-1");
    world.edit_pod("job-0", &json!({"status": {"phase": "Succeeded"}}));
    world.settle();
    assert_eq!(world.counts(), "a 1/1, b 2/-1");
    assert!(world.written.is_empty(), "Jobs read no deletion costs");
}

#[test]
fn percentages_follow_the_replicas_and_round_up() {
    let mut world = World::of_cloneset(5, json!([subset("a", json!("30%")), subset("b", Value::Null)]));
    world.settle();
    assert_eq!(world.counts(), "a 0/2, b 0/-1");
    world.scale(10);
    world.settle();
    assert_eq!(world.counts(), "a 0/3, b 0/-1");
}

#[test]
fn pods_that_still_run_are_counted_after_a_scale_to_zero() {
    let mut world = World::of_cloneset(1, json!([subset("a", json!(1)), subset("b", Value::Null)]));
    world.settle();
    world.create("web-0", &json!({})).unwrap();
    world.scale(0);
    world.settle();
    assert_eq!(
        (world.counts().as_str(), world.cost("web-0")),
        ("a 1/0, b 0/-1", "200")
    );
}

#[test]
fn a_workload_that_is_gone_has_no_pods() {
    let mut world = World::of_cloneset(2, json!([subset("a", json!("50%")), subset("b", Value::Null)]));
    world.settle();
    world.create("web-0", &json!({})).unwrap();
    world.settle();
    world.known = Some(Known::Gone);
    world.settle();
    assert_eq!(
        (world.counts().as_str(), world.counts_of("versionIgnored")),
        ("a 0/0, b 0/-1", None)
    );
}

#[test]
fn a_workload_that_cannot_be_read_changes_nothing_and_one_that_is_not_read_yet_neither() {
    for known in [Known::Unreadable, Known::NotYet] {
        let mut world = World::of_cloneset(2, json!([subset("a", json!(1)), subset("b", Value::Null)]));
        world.create("web-0", &json!({})).unwrap();
        let before = world.spread["status"].clone();
        world.known = Some(known.clone());
        world.settle();
        assert_eq!(world.spread["status"], before);
        let unreadable = "WorkloadUnreadable: CloneSet web cannot be read, and its pods are not counted";
        assert_eq!(
            world.events.first().map(String::as_str),
            (known == Known::Unreadable).then_some(unreadable)
        );
        assert_eq!(world.plan(Explain::No).requeue.is_some(), known == Known::NotYet);
    }
}

#[test]
fn one_that_is_being_deleted_leaves_pods_as_they_are() {
    let mut world = World::of_cloneset(1, json!([subset("a", json!(1))]));
    world.pod("web-0", &json!({}));
    world.run("web-0", "a1");
    world.edit(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    world.settle();
    assert!(world.written.is_empty() && world.reports.is_empty() && world.reads == 0);
}

#[test]
fn a_filter_without_a_selector_takes_all_pods() {
    let mut world = World::of_cloneset(1, json!([subset("a", json!(1)), subset("b", Value::Null)]));
    world.edit(&json!({"spec": {"targetFilter": {"replicasPathList": ["spec.replicas"]}}}));
    world.create("web-0", &json!({})).unwrap();
    world.settle();
    assert_eq!(world.counts(), "a 1/0, b 0/-1");
}
