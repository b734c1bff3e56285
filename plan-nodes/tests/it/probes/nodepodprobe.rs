//! NodePodProbes follow nodes and pods, and pods follow results.

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::{Explain, Memory, Part, ResourceId, Write};
use serde_json::{Value, json};

use super::world::{World, exec, idle};

const PPM: ResourceId = kruise_api::podprobemarker::RESOURCE;
const NPP: ResourceId = kruise_api::nodepodprobe::RESOURCE;

fn probed(probes: &Value) -> World {
    let mut world = World::new(&["n1"]);
    world.pod("g-0", "n1");
    world.marker("a", probes);
    world.settle();
    world
}

/// Marks and conditions as one line.
fn marks(world: &World) -> String {
    let (marks, conditions) = world.marks("g-0");
    let all = marks.iter().chain(&conditions);
    let all: Vec<String> = all.map(|(key, value)| format!("{key}={value}")).collect();
    all.join(" ")
}

#[test]
fn a_ready_node_gets_a_node_pod_probe_and_loses_it_with_the_node() {
    let mut world = World::new(&["n1"]);
    let stored = world.get(NPP, "", "n1");
    assert_eq!(
        (&stored["kind"], &stored["spec"]),
        (&json!("NodePodProbe"), &json!({}))
    );
    world.node("v1", &json!({"type": "virtual-kubelet"}));
    world.node("n2", &json!({}));
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    world.edit(ResourceId::NODES, "", "n2", &unready);
    assert!(
        world.settle().is_empty(),
        "virtual nodes and nodes that are not ready have none"
    );
    world.delete(ResourceId::NODES, "", "n1");
    assert_eq!(world.settle(), ["delete-node-pod-probe n1"]);
    assert!(world.get(NPP, "", "n1").is_null());
}

#[test]
fn pods_that_are_gone_ended_or_replaced_are_removed_from_the_list() {
    let mut world = probed(&json!([idle()]));
    for name in ["g-1", "g-2"] {
        world.pod(name, "n1");
    }
    world.settle();
    // No marker acts: what is removed is removed by the controller of the node.
    world.delete(ResourceId::PODS, "games", "g-0");
    world.edit_pod("g-1", &json!({"status": {"phase": "Failed"}}));
    world.pod("g-2", "n1");
    let plan = world.plan_node("n1");
    assert_eq!(plan.writes.len(), 1, "one write for all of them");
    world.execute(&plan);
    assert!(world.probes("n1").is_empty());
    world.settle();
    assert_eq!(world.probes("n1"), ["g-2 a#idle"]);
}

#[test]
fn what_a_marker_adds_while_a_pod_is_removed_is_not_lost() {
    let mut world = probed(&json!([idle()]));
    world.delete(ResourceId::PODS, "games", "g-0");
    let tidy = world.plan_node("n1").writes[0].steps[0].write.clone();
    world.pod("g-1", "n1");
    let add = world.plan_marker("games", "a", Explain::No);
    world.execute(&add);
    assert!(
        world.apply(&tidy, &mut None).is_err(),
        "it was made from another list"
    );
    world.settle();
    assert_eq!(world.probes("n1"), ["g-1 a#idle"]);
}

#[test]
fn pods_of_namespaces_that_are_not_watched_stay() {
    let mut world = probed(&json!([idle()]));
    world.delete(ResourceId::PODS, "games", "g-0");
    world.watched = Some("shop".into());
    assert!(world.plan_node("n1").writes.is_empty());
}

#[test]
fn probes_of_markers_that_are_gone_are_removed_and_names_without_a_marker_stay() {
    let mut world = probed(&json!([idle()]));
    let mut list = world.get(NPP, "", "n1")["spec"]["podProbes"].clone();
    for name in ["gone#idle", "liveness"] {
        let probe = json!({"name": name, "containerName": "main", "probe": {}});
        list[0]["probes"].as_array_mut().unwrap().push(probe);
    }
    world.edit(NPP, "", "n1", &json!({"spec": {"podProbes": list}}));
    assert_eq!(world.settle(), ["tidy-probes n1"]);
    assert_eq!(world.probes("n1"), ["g-0 a#idle", "g-0 liveness"]);
}

#[test]
fn a_result_becomes_a_condition_labels_and_annotations_in_one_request() {
    let mut world = probed(&json!([idle()]));
    world.report("n1", "g-0", "a#idle", "Succeeded", "no players");
    let plan = world.plan_node("n1");
    assert_eq!(plan.writes.len(), 1);
    assert!(matches!(
        &plan.writes[0].steps[0].write,
        Write::Patch {
            part: Part::Status,
            ..
        }
    ));
    assert_eq!(world.settle(), ["mark-pod g-0"]);
    assert_eq!(
        marks(&world),
        "cost=-10 game=idle spare=yes game.example/idle=True"
    );
    let conditions = world.the_pod("g-0")["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|one| one["type"] == "game.example/idle");
    assert_eq!(
        *condition.unwrap(),
        json!({"type": "game.example/idle", "status": "True", "message": "no players",
            "lastProbeTime": "2026-01-01T01:00:00Z", "lastTransitionTime": "2026-01-01T01:00:00Z"})
    );
    world.report("n1", "g-0", "a#idle", "Failed", "3 players");
    assert_eq!(world.settle(), ["mark-pod g-0"]);
    assert_eq!(
        marks(&world),
        "cost=10 game=busy why=players game.example/idle=False",
        "what only success has is removed"
    );
    world.report("n1", "g-0", "a#idle", "Failed", "3 players");
    assert!(world.settle().is_empty(), "an equal result changes nothing");
}

#[test]
fn messages_alone_are_written_once_a_minute() {
    let mut world = probed(&json!([idle()]));
    world.report("n1", "g-0", "a#idle", "Succeeded", "it is 1");
    world.settle();
    let begun: Timestamp = "2026-01-01T02:00:00Z".parse().unwrap();
    let mut memory = Memory::default();
    let mut writes = 0;
    for second in 0..150_u64 {
        let now = begun + SignedDuration::from_secs(second as i64);
        world.report("n1", "g-0", "a#idle", "Succeeded", &format!("it is {now}"));
        let plan = world.plan_node_after("n1", &memory, now);
        memory.count(plan.attempts.clone(), now);
        writes += u32::from(world.execute(&plan));
        let waits = plan.requeue.map(|delay| delay.as_secs());
        assert_eq!(waits, (second % 60 > 0).then_some(60 - second % 60));
    }
    assert_eq!(writes, 3);
    world.report("n1", "g-0", "a#idle", "Failed", "it is late");
    let plan = world.plan_node_after("n1", &memory, begun + SignedDuration::from_secs(150));
    assert_eq!(plan.writes.len(), 1, "another state does not wait");
}

#[test]
fn after_unknown_the_condition_is_false_and_no_policy_applies() {
    let mut world = probed(&json!([idle()]));
    for before in ["Succeeded", "Failed"] {
        world.report("n1", "g-0", "a#idle", before, "");
        world.settle();
        world.report("n1", "g-0", "a#idle", "Unknown", "");
        world.settle();
        assert_eq!(marks(&world), "game.example/idle=False", "after {before}");
    }
}

#[test]
fn with_one_policy_the_other_result_removes_what_it_sets() {
    let mut probe = idle();
    probe["markerPolicy"].as_array_mut().unwrap().pop();
    probe.as_object_mut().unwrap().remove("podConditionType");
    let mut world = probed(&json!([probe]));
    world.report("n1", "g-0", "a#idle", "Succeeded", "");
    world.settle();
    assert_eq!(marks(&world), "cost=-10 game=idle spare=yes");
    world.report("n1", "g-0", "a#idle", "Failed", "");
    let plan = world.plan_node("n1");
    assert!(
        matches!(
            &plan.writes[0].steps[0].write,
            Write::Patch { part: Part::Main, .. }
        ),
        "without a condition only the metadata change"
    );
    world.execute(&plan);
    assert_eq!(marks(&world), "");
}

#[test]
fn of_two_markers_with_a_condition_the_first_result_decides() {
    let mut world = probed(&json!([exec("x", "c/x")]));
    let mut other = exec("x", "c/x");
    other["markerPolicy"] = json!([{"state": "Failed", "labels": {"b": "failed"}}]);
    world.marker("b", &json!([other]));
    world.settle();
    world.report("n1", "g-0", "b#x", "Failed", "");
    world.settle();
    assert_eq!(marks(&world), "b=failed c/x=False");
    world.report("n1", "g-0", "a#x", "Succeeded", "");
    world.settle();
    assert_eq!(marks(&world), "b=failed c/x=True");
    assert!(world.settle().is_empty(), "they do not overwrite each other");
    let why = world.plan_marker("games", "b", Explain::Yes).why;
    assert!(
        why.iter()
            .any(|why| why.text == "x: Failed, but another probe or component sets c/x"),
        "{why:?}"
    );
}

#[test]
fn two_probes_of_a_container_with_equal_results_both_appear() {
    let mut world = probed(&json!([exec("one", "c/one"), exec("two", "c/two")]));
    world.report("n1", "g-0", "a#one", "Succeeded", "");
    world.report("n1", "g-0", "a#two", "Succeeded", "");
    assert_eq!(world.settle(), ["mark-pod g-0"]);
    assert_eq!(marks(&world), "c/one=True c/two=True");
}

#[test]
fn results_of_probes_pods_and_markers_that_are_not_meant_any_more_count_for_nothing() {
    let reported = || {
        let mut world = probed(&json!([exec("one", "c/one")]));
        world.report("n1", "g-0", "a#one", "Succeeded", "");
        world
    };
    // The probe left the marker, and then the list.
    let mut world = reported();
    world.edit_marker("a", &json!({"spec": {"probes": [exec("two", "c/two")]}}));
    assert!(world.plan_node("n1").writes.is_empty());
    world.settle();
    assert_eq!(marks(&world), "");
    // The marker is being deleted.
    let mut world = reported();
    world.delete(PPM, "games", "a");
    assert!(world.plan_node("n1").writes.is_empty());
    // Another pod has the name.
    let mut world = reported();
    world.pod("g-0", "n1");
    world.settle();
    assert_eq!(marks(&world), "");
    // It is being deleted.
    let mut world = reported();
    world.edit_pod(
        "g-0",
        &json!({"metadata": {"deletionTimestamp": "2026-01-01T01:00:00Z"}}),
    );
    world.settle();
    assert_eq!(marks(&world), "");
}

#[test]
fn states_without_a_result_or_a_marker_in_their_name_are_no_trouble() {
    let mut world = probed(&json!([exec("one", "c/one")]));
    let mut list = world.get(NPP, "", "n1")["spec"]["podProbes"].clone();
    let probe = json!({"name": "nameless", "containerName": "main", "probe": {}});
    list[0]["probes"].as_array_mut().unwrap().push(probe);
    world.edit(NPP, "", "n1", &json!({"spec": {"podProbes": list}}));
    world.report("n1", "g-0", "nameless", "Succeeded", "");
    world.report("n1", "g-0", "a#one", "", "");
    assert!(world.settle().is_empty());
    assert_eq!(marks(&world), "");
}

#[test]
fn a_pod_without_labels_is_marked() {
    let mut world = probed(&json!([idle()]));
    world.edit_pod("g-0", &json!({"metadata": {"labels": null, "annotations": null}}));
    world.edit_marker(
        "a",
        &json!({"spec": {"selector": {"matchLabels": null, "matchExpressions": [
        {"key": "other", "operator": "DoesNotExist"}]}}}),
    );
    world.report("n1", "g-0", "a#idle", "Succeeded", "");
    world.settle();
    assert_eq!(
        marks(&world),
        "cost=-10 game=idle spare=yes game.example/idle=True"
    );
}

#[test]
fn what_somebody_else_removed_from_a_pod_is_written_again() {
    let mut world = probed(&json!([idle()]));
    world.report("n1", "g-0", "a#idle", "Succeeded", "");
    world.settle();
    let change = json!({"metadata": {"labels": {"game": null}, "annotations": {"cost": "5"}}});
    world.edit_pod("g-0", &change);
    assert_eq!(world.settle(), ["mark-pod g-0"]);
    assert_eq!(
        marks(&world),
        "cost=-10 game=idle spare=yes game.example/idle=True"
    );
}
