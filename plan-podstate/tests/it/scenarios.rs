//! The acceptance scenarios of records.

use kruise_plan_kit::{Explain, workloads::Known};
use serde_json::{Value, json};

use crate::world::{HOST, World, ZONE};

/// A StatefulSet of `apps.kruise.io` with so many pods, which alternate between two nodes and are all Ready.
fn broker(pods: i32) -> World {
    let mut world = World::new();
    world.workload("apps.kruise.io", "broker", &json!({"replicas": pods}));
    world.state("broker", "broker", &json!({}));
    for number in 0..pods {
        let node = ["a1", "b1"][number as usize % 2];
        world.ready("broker", &format!("broker-{number}"), node);
    }
    world.settle();
    world
}

#[test]
fn every_ready_pod_is_recorded_with_its_node_and_the_labels_that_are_named() {
    let world = broker(3);
    assert_eq!(world.recorded("broker"), "broker-0 broker-1 broker-2");
    assert_eq!(
        world.record("broker", "broker-1"),
        json!({"nodeName": "b1", "nodeTopologyLabels": {ZONE: "b", HOST: "b1"}})
    );
    assert_eq!(world.states["broker"]["status"]["observedGeneration"], 1);
}

#[test]
fn at_rest_nothing_is_written() {
    let mut world = broker(3);
    let reports = world.reports.len();
    world.edit_pod("broker-1", &json!({"status": {"podIP": "10.0.0.1"}}));
    world.settle();
    assert_eq!((world.reports.len(), world.written.len()), (reports, 0));
    assert!(world.events.is_empty(), "{:?}", world.events);
}

#[test]
fn a_pod_that_was_never_ready_is_not_recorded() {
    let mut world = broker(1);
    world.scale("broker", 2);
    world.pod("broker", "broker-1");
    world.settle();
    world.run("broker-1", "b1", false);
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0");
    assert!(world.why("broker", "broker-1").contains("not Ready"));
}

#[test]
fn records_do_not_change_while_pods_are_recreated_on_their_nodes() {
    let mut world = broker(2);
    let before = world.states["broker"]["status"].clone();
    for pod in ["broker-1", "broker-0"] {
        let node = if pod == "broker-1" { "b1" } else { "a1" };
        world.terminate(pod);
        world.settle();
        world.remove_pod(pod);
        world.settle();
        world.pod("broker", pod);
        world.settle();
        world.run(pod, node, false);
        world.settle();
        world.run(pod, node, true);
        world.settle();
        assert_eq!(world.states["broker"]["status"], before, "{pod}");
    }
}

#[test]
fn scaling_in_forgets_pods_once_they_are_gone_and_scaling_out_records_them_anew() {
    let mut world = broker(5);
    world.scale("broker", 1);
    world.settle();
    assert_eq!(world.recorded("broker").split(' ').count(), 5, "they still run");
    for pod in ["broker-4", "broker-3", "broker-2", "broker-1"] {
        world.terminate(pod);
        world.settle();
        assert!(world.recorded("broker").contains(pod), "it still runs");
        world.remove_pod(pod);
        world.settle();
        assert!(!world.recorded("broker").contains(pod));
    }
    assert_eq!(world.recorded("broker"), "broker-0");
    world.scale("broker", 5);
    for pod in ["broker-1", "broker-2", "broker-3", "broker-4"] {
        world.ready("broker", pod, "a2");
    }
    world.settle();
    assert_eq!(world.recorded("broker").split(' ').count(), 5);
    assert_eq!(world.record("broker", "broker-3")["nodeName"], "a2");
}

#[test]
fn scaling_to_zero_forgets_nothing_while_pods_still_run() {
    let mut world = broker(2);
    world.scale("broker", 0);
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0 broker-1");
    world.terminate("broker-1");
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0 broker-1");
    world.remove_pod("broker-1");
    // Scaled back before the last pod goes.
    world.settle();
    world.scale("broker", 2);
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0");
    world.scale("broker", 0);
    world.remove_pod("broker-0");
    world.settle();
    assert_eq!(world.recorded("broker"), "");
}

#[test]
fn the_policy_when_deleted_keeps_the_records_of_pods_that_are_scaled_in() {
    let mut world = broker(5);
    let policy = json!({"spec": {"persistentPodStateRetentionPolicy": "WhenDeleted"}});
    world.edit("broker", &policy);
    world.scale("broker", 1);
    for pod in ["broker-4", "broker-3", "broker-2", "broker-1"] {
        world.remove_pod(pod);
        world.settle();
    }
    assert_eq!(world.recorded("broker").split(' ').count(), 5);
    assert_eq!(
        world.record("broker", "broker-3")["nodeTopologyLabels"][ZONE],
        "b"
    );
}

#[test]
fn keys_that_leave_the_specification_leave_the_records_and_new_ones_come() {
    let mut world = broker(2);
    world.edit("broker", &json!({"spec": {"requiredPersistentTopology": null}}));
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0")["nodeTopologyLabels"],
        json!({HOST: "a1"})
    );
    assert_eq!(world.states["broker"]["status"]["observedGeneration"], 2);
    world.edit(
        "broker",
        &json!({"spec": {"requiredPersistentTopology": {"keys": [ZONE]}}}),
    );
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0")["nodeTopologyLabels"],
        json!({HOST: "a1", ZONE: "a"})
    );
}

#[test]
fn the_end_of_the_workload_is_the_end_of_all_records_whatever_the_policy() {
    for policy in ["WhenScaled", "WhenDeleted"] {
        let mut world = broker(2);
        let change = json!({"spec": {"persistentPodStateRetentionPolicy": policy}});
        world.edit("broker", &change);
        world.settle();
        world.change(
            "broker",
            &json!({"metadata": {"deletionTimestamp": "2026-01-01T01:00:00Z"}}),
        );
        world.settle();
        assert_eq!(
            world.states["broker"]["status"],
            json!({"observedGeneration": 2}),
            "{policy}"
        );
        world.remove_workload("broker");
        world.settle();
        assert_eq!(world.states["broker"]["status"], json!({"observedGeneration": 2}));
    }
}

#[test]
fn reserved_ordinals_are_out_of_range_once_their_pods_are_gone() {
    let mut world = broker(2);
    world.scale("broker", 2);
    world.ready("broker", "broker-2", "a2");
    world.change("broker", &json!({"spec": {"reserveOrdinals": [1]}}));
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0 broker-1 broker-2");
    world.remove_pod("broker-1");
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0 broker-2");
}

#[test]
fn ordinals_begin_where_the_workload_says() {
    let mut world = World::new();
    world.workload(
        "apps",
        "broker",
        &json!({"replicas": 2, "ordinals": {"start": 3}}),
    );
    world.state("broker", "broker", &json!({}));
    world.ready("broker", "broker-3", "a1");
    world.ready("broker", "broker-4", "b1");
    world.settle();
    world.remove_pod("broker-4");
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-3 broker-4", "it comes back");
    world.change("broker", &json!({"spec": {"replicas": 1}}));
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-3");
}

#[test]
fn what_cannot_be_read_of_reserved_ordinals_forgets_nothing() {
    let mut world = broker(2);
    world.remove_pod("broker-1");
    world.change(
        "broker",
        &json!({"spec": {"replicas": 1, "reserveOrdinals": ["x-y"]}}),
    );
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0 broker-1");
}

#[test]
fn a_node_without_a_label_has_a_record_without_it() {
    let mut world = broker(0);
    world.scale("broker", 1);
    world.ready("broker", "broker-0", "bare");
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0")["nodeTopologyLabels"],
        json!({HOST: "bare"})
    );
    let reports = world.reports.len();
    world.settle();
    assert_eq!(world.reports.len(), reports);
}

#[test]
fn labels_that_a_node_loses_stay_recorded_while_its_pod_is_there_and_other_values_are_taken() {
    let mut world = broker(1);
    world.node("a1", None);
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0")["nodeTopologyLabels"][ZONE],
        "a"
    );
    world.node("a1", Some("c"));
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0")["nodeTopologyLabels"][ZONE],
        "c"
    );
    // Of another node, nothing is taken over.
    world.remove_pod("broker-0");
    world.ready("broker", "broker-0", "bare");
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0")["nodeTopologyLabels"],
        json!({HOST: "bare"})
    );
}

#[test]
fn a_pod_that_is_ready_elsewhere_has_its_new_node_recorded() {
    let mut world = broker(1);
    world.remove_pod("broker-0");
    world.pod("broker", "broker-0");
    world.run("broker-0", "b1", false);
    world.settle();
    assert_eq!(world.record("broker", "broker-0")["nodeName"], "a1");
    world.run("broker-0", "b1", true);
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0"),
        json!({"nodeName": "b1", "nodeTopologyLabels": {ZONE: "b", HOST: "b1"}})
    );
}

#[test]
fn a_node_that_is_not_known_keeps_the_record_and_is_looked_for_again() {
    let mut world = broker(1);
    world.remove_pod("broker-0");
    world.ready("broker", "broker-0", "unknown");
    let plan = world.plan("broker", Explain::No);
    assert!(plan.status.is_none() && plan.requeue.is_some());
    assert!(world.why("broker", "broker-0").contains("not known"));
    world.node("unknown", Some("z"));
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0")["nodeTopologyLabels"][ZONE],
        "z"
    );
}

#[test]
fn a_pod_that_waits_for_a_zone_that_is_gone_keeps_its_record_and_an_event_names_it() {
    let mut world = broker(2);
    world.remove_node("b1");
    world.remove_pod("broker-1");
    world.pod("broker", "broker-1");
    world.settle();
    assert_eq!(
        world.record("broker", "broker-1")["nodeTopologyLabels"][ZONE],
        "b"
    );
    let [event] = &world.events[..] else {
        panic!("one event: {:?}", world.events)
    };
    assert!(
        event.starts_with("RequiredTopologyGone on PersistentPodState: ")
            && event.contains(&format!("broker-1 ({ZONE}=b)")),
        "{event}"
    );
    assert!(world.why("broker", "broker-1").contains("there is none"));
    // Another node of the zone will do.
    world.node("b2", Some("b"));
    assert!(world.plan("broker", Explain::No).events.is_empty());
}

#[test]
fn a_preferred_label_that_is_gone_strands_nobody() {
    let mut world = broker(1);
    world.remove_node("a1");
    world.remove_pod("broker-0");
    world.pod("broker", "broker-0");
    world.settle();
    assert!(world.events.is_empty(), "{:?}", world.events);
}

fn noted(world: &mut World) {
    let keys = json!({"spec": {"persistentPodAnnotations": [{"key": "ip"}, {"key": "none"}]}});
    world.edit("broker", &keys);
}

#[test]
fn annotations_of_pods_are_recorded_and_read_only_when_they_differ() {
    let mut world = broker(2);
    world.edit_pod(
        "broker-0",
        &json!({"metadata": {"annotations": {"ip": "10.0.0.7", "other": "x"}}}),
    );
    noted(&mut world);
    world.settle();
    assert_eq!(
        world.record("broker", "broker-0")["annotations"],
        json!({"ip": "10.0.0.7"})
    );
    assert_eq!(world.record("broker", "broker-1")["annotations"], Value::Null);
    assert_eq!(world.reads, 1, "the other one has none of them");
    world.settle();
    assert_eq!(world.reads, 1);
    world.edit_pod(
        "broker-0",
        &json!({"metadata": {"annotations": {"ip": "10.0.0.8"}}}),
    );
    world.settle();
    assert_eq!(world.reads, 2);
    assert_eq!(
        world.record("broker", "broker-0")["annotations"],
        json!({"ip": "10.0.0.8"})
    );
    world.edit_pod("broker-0", &json!({"metadata": {"annotations": {"ip": null}}}));
    world.settle();
    assert_eq!(world.record("broker", "broker-0")["annotations"], Value::Null);
    assert_eq!(world.reads, 2);
}

#[test]
fn many_pods_are_read_a_number_at_a_time() {
    let mut world = broker(0);
    noted(&mut world);
    world.scale("broker", 70);
    for number in 0..70 {
        let pod = format!("broker-{number}");
        world.ready("broker", &pod, "a1");
        world.edit_pod(
            &pod,
            &json!({"metadata": {"annotations": {"ip": number.to_string()}}}),
        );
    }
    world.settle();
    assert_eq!(world.recorded("broker").split(' ').count(), 70);
    assert_eq!(world.record("broker", "broker-69")["annotations"]["ip"], "69");
    assert_eq!(world.reads, 70);
    assert_eq!(world.reports.len(), 1 + 3, "the first, then 32, 32 and 6");
}

#[test]
fn many_pods_that_cannot_be_read_keep_no_others_waiting() {
    let mut world = broker(0);
    noted(&mut world);
    world.scale("broker", 40);
    for number in 0..40 {
        let pod = format!("broker-{number:02}");
        world.ready("broker", &pod, "a1");
        world.edit_pod(&pod, &json!({"metadata": {"annotations": {"ip": "1"}}}));
    }
    // One more than a reconcile reads come first.
    world.hides = Some("timeout".into());
    world.shown = (33..40).map(|number| format!("broker-{number:02}")).collect();
    for _ in 0..2 {
        let plan = world.plan("broker", Explain::No);
        world.execute("broker", plan);
    }
    assert_eq!(world.record("broker", "broker-39")["annotations"]["ip"], "1");
    assert_eq!(world.reads, 40, "each was tried once");
}

#[test]
fn a_pod_that_cannot_be_read_keeps_its_record_and_is_tried_again_later_and_later() {
    let mut world = broker(1);
    world.edit_pod("broker-0", &json!({"metadata": {"annotations": {"ip": "1"}}}));
    noted(&mut world);
    world.hides = Some("timeout".into());
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let plan = world.plan("broker", Explain::No);
        let pause = plan.requeue.unwrap();
        world.execute("broker", plan);
        world.now += jiff::SignedDuration::try_from(pause).unwrap();
        pauses.push(pause.as_secs());
    }
    assert_eq!(pauses, [1, 2, 4]);
    assert_eq!(world.record("broker", "broker-0")["nodeName"], "a1");
    world.hides = None;
    world.settle();
    assert_eq!(world.record("broker", "broker-0")["annotations"]["ip"], "1");
}

#[test]
fn a_listed_kind_is_recorded_like_a_statefulset_with_its_annotations() {
    let mut world = World::new();
    world.workload("example.com", "x", &json!({"replicas": 2}));
    let keys = json!({"spec": {"persistentPodAnnotations": [{"key": "ip"}]}});
    world.state("x", "x", &keys);
    world.ready("x", "x-0", "a1");
    world.ready("x", "x-1", "b1");
    world.edit_pod("x-1", &json!({"metadata": {"annotations": {"ip": "1"}}}));
    world.settle();
    assert_eq!(world.recorded("x"), "x-0 x-1");
    assert_eq!(world.record("x", "x-1")["annotations"]["ip"], "1");
    // It has no cache: it is asked for again, so that it goes on being read.
    assert_eq!(world.plan("x", Explain::No).requeue.unwrap().as_secs(), 60);
}

#[test]
fn a_workload_that_cannot_be_read_changes_nothing_and_one_that_is_not_read_yet_neither() {
    let mut world = broker(1);
    let before = world.states["broker"].clone();
    world.known = Some(Known::NotYet);
    let plan = world.plan("broker", Explain::No);
    assert!(plan.requeue.is_some() && plan.status.is_none() && plan.events.is_empty());
    world.known = Some(Known::Unreadable);
    world.settle();
    assert_eq!(world.states["broker"], before);
    assert_eq!(
        world.events,
        [
            "WorkloadUnreadable on PersistentPodState: StatefulSet broker cannot be read, and its pods are not recorded"
        ]
    );
}

#[test]
fn a_workload_that_does_not_say_how_many_pods_it_wants_forgets_none() {
    let mut world = broker(2);
    world.remove_pod("broker-1");
    world.change("broker", &json!({"spec": {"replicas": null}}));
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0 broker-1");
}

#[test]
fn names_without_a_number_are_never_out_of_range() {
    let mut world = broker(1);
    world.scale("broker", 0);
    for pod in ["primary", "broker-x"] {
        world.ready("broker", pod, "a1");
    }
    world.settle();
    for pod in ["primary", "broker-x", "broker-0"] {
        world.remove_pod(pod);
    }
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-x primary");
}

#[test]
fn a_report_names_only_the_records_that_changed() {
    let mut world = broker(3);
    world.reports.clear();
    world.remove_pod("broker-2");
    world.ready("broker", "broker-2", "a2");
    world.scale("broker", 2);
    world.scale("broker", 3);
    world.settle();
    let changes = json!({"nodeName": "a2", "nodeTopologyLabels": {HOST: "a2"}});
    let patch = json!({"status": {"observedGeneration": 1, "podStates": {"broker-2": changes}}});
    assert_eq!(world.reports, [patch]);
}

#[test]
fn a_lost_race_for_the_status_loses_no_record() {
    let mut world = broker(2);
    world.remove_pod("broker-1");
    world.ready("broker", "broker-1", "a2");
    let plan = world.plan("broker", Explain::No);
    let version = plan.status.unwrap().version;
    // Somebody else writes first: the report is for another version, and is made again.
    let other = json!({"status": {"podStates": {"broker-9": {"nodeName": "a1"}}}});
    world.edit("broker", &other);
    assert_ne!(world.states["broker"]["metadata"]["resourceVersion"], *version);
    world.edit(
        "broker",
        &json!({"spec": {"persistentPodStateRetentionPolicy": "WhenDeleted"}}),
    );
    world.settle();
    assert_eq!(world.recorded("broker"), "broker-0 broker-1 broker-9");
    assert_eq!(world.record("broker", "broker-1")["nodeName"], "a2");
}

#[test]
fn one_that_is_being_deleted_records_nothing() {
    let mut world = broker(1);
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T01:00:00Z"}});
    world.edit("broker", &leaving);
    world.reports.clear();
    world.ready("broker", "broker-1", "b1");
    world.settle();
    assert!(world.reports.is_empty());
}

#[test]
fn an_explanation_says_what_is_recorded_and_why_other_pods_are_not() {
    let mut world = broker(2);
    world.pod("broker", "broker-2");
    assert_eq!(
        world.why("broker", ""),
        format!(
            "records 2 pods of StatefulSet broker until they are scaled in; new ones need the same {ZONE}, and preferably the same {HOST} (weight 100)"
        )
    );
    assert_eq!(
        world.why("broker", "broker-0"),
        format!("is Ready on node a1, which is recorded with {HOST}=a1, {ZONE}=a")
    );
    assert!(world.why("broker", "broker-2").contains("has no node yet"));
}
