//! Where OpenKruise loses data, sticks or breaks its own promise: one test for each.

use jiff::SignedDuration;
use kruise_plan_kit::Memory;
use kruise_plan_kit::{Part, Precondition, Write, sidecars::names};
use kruise_plan_sidecars::{Explain, WriteLocks};
use kruise_plan_test_kit::text;
use serde_json::{Value, json};

use crate::world::{World, hot, parsed};

#[test]
fn a_pod_deleted_right_after_its_upgrade_blocks_nothing() {
    let mut world = World::settled(2);
    world.image("log:2");
    world.reconcile();
    let taken = world.with_image("log", "log:2").remove(0);
    world.pods.remove(&taken);
    world.settle();
    assert_eq!(world.with_image("log", "log:2").len(), 1);
    assert_eq!(world.set["status"]["updatedReadyPods"], 1);
}

/// The report of a pod that was just upgraded may be from before: it says that all is well, of what no longer runs.
#[test]
fn the_next_pod_waits_until_the_node_has_seen_the_upgrade_of_the_one_before() {
    let unseen = |pod: &mut Value| {
        pod["metadata"]["generation"] = json!(2);
        pod["status"]["observedGeneration"] = json!(1);
        let condition = json!({"type": "ContainersReady", "status": "True", "observedGeneration": 1});
        let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
        conditions.push(condition);
    };
    let restarting = |pod: &mut Value| {
        let condition = json!({"type": "AllContainersRestarting", "status": "True"});
        let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
        conditions.push(condition);
    };
    for (what, report) in [
        ("unseen", &unseen as &dyn Fn(&mut Value)),
        ("restarting", &restarting),
    ] {
        let mut world = World::settled(2);
        world.image("log:2");
        world.reconcile();
        let taken = world.with_image("log", "log:2").remove(0);
        world.run(&taken);
        let seen = world.pods[&taken].clone();
        report(world.pods.get_mut(&taken).unwrap());
        world.reconcile();
        assert_eq!(world.with_image("log", "log:2").len(), 1, "{what}");
        world.pods.insert(taken, seen);
        world.reconcile();
        assert_eq!(world.with_image("log", "log:2").len(), 2, "{what}");
    }
}

#[test]
fn a_pod_that_leaves_the_selector_in_the_middle_blocks_nothing() {
    let mut world = World::settled(2);
    world.image("log:2");
    world.reconcile();
    let taken = world.with_image("log", "log:2").remove(0);
    world.pods.get_mut(&taken).unwrap()["metadata"]["labels"] = json!({});
    world.settle();
    assert_eq!(world.with_image("log", "log:2").len(), 2);
}

#[test]
fn fields_that_nobody_here_knows_survive_an_upgrade() {
    let mut world = World::settled(1);
    let pod = world.pods.get_mut("p0").unwrap();
    pod["spec"]["fromTheFuture"] = json!({"a": [1]});
    pod["spec"]["containers"][0]["alsoNew"] = json!(true);
    pod["metadata"]["annotations"]["note"] = json!("n");
    let mut records: Value = parsed(&world.annotation("p0", names::HASH));
    records["other"] = json!({"hash": "h", "later": {"x": 1}});
    records["logs"]["later"] = json!(7);
    let pod = world.pods.get_mut("p0").unwrap();
    pod["metadata"]["annotations"][names::HASH] = json!(records.to_string());
    world.image("log:2");
    world.settle();
    let pod = &world.pods["p0"];
    assert_eq!(pod["spec"]["fromTheFuture"], json!({"a": [1]}));
    assert_eq!(pod["spec"]["containers"][0]["alsoNew"], true);
    assert_eq!(pod["metadata"]["annotations"]["note"], "n");
    let records: Value = parsed(&world.annotation("p0", names::HASH));
    assert_eq!(
        (&records["other"]["later"]["x"], &records["logs"]["later"]),
        (&json!(1), &json!(7))
    );
}

#[test]
fn a_set_that_only_injects_counts_its_pods_all_the_same() {
    let mut world = World::settled(2);
    world.strategy("type", json!("NotUpdate"));
    world.settle();
    world.pods.remove("p0");
    world.serve("p1", false);
    world.settle();
    assert_eq!(world.set["status"]["matchedPods"], 1);
    assert_eq!(world.set["status"]["readyPods"], 0);
}

#[test]
fn a_pod_whose_upgrade_is_refused_holds_up_no_other() {
    let mut world = World::settled(3);
    world.image("log:2");
    let first = world.plan().writes.iter().find_map(|object| {
        let target = object.steps[0].write.target();
        target.name.starts_with('p').then(|| target.name.clone())
    });
    let first = first.unwrap();
    world.refuses.push(("update-in-place", first.clone()));
    for _ in 0..12 {
        world.reconcile();
        for pod in world.with_image("log", "log:2") {
            world.run(&pod);
        }
    }
    assert_eq!(world.with_image("log", "log:2").len(), 2, "all but {first}");
    world.refuses.clear();
    world.settle();
    assert_eq!(world.with_image("log", "log:2").len(), 3);
}

#[test]
fn an_annotation_that_cannot_be_merged_holds_up_no_other_pod() {
    let mut world = World::settled(2);
    world.pods.get_mut("p0").unwrap()["metadata"]["annotations"]["merged"] = json!("not JSON");
    world.edit(|spec| {
        spec["patchPodMetadata"] =
            json!([{"patchPolicy": "MergePatchJson", "annotations": {"merged": "{\"b\":2}"}}]);
    });
    world.image("log:2");
    world.settle();
    assert_eq!(world.with_image("log", "log:2"), ["p1"]);
    let plan = world.plan();
    assert_eq!(plan.events[0].reason, "InvalidPodMetadata");
    assert!(
        plan.events[0].message.contains("shop/p0"),
        "{}",
        plan.events[0].message
    );
}

#[test]
fn pods_that_cannot_be_upgraded_are_part_of_the_partition() {
    let mut world = World::settled(1);
    world.edit(|spec| spec["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]));
    for index in 1..4 {
        world.add(&format!("p{index}"));
    }
    world.strategy("partition", json!(2));
    world.image("log:2");
    world.settle();
    assert_eq!(
        world.with_image("log", "log:2").len(),
        2,
        "p0 is one of the two that stay"
    );
}

#[test]
fn the_same_image_under_another_name_is_there_once_a_new_container_serves() {
    let mut world = World::settled(2);
    world.image("mirror/log:1");
    world.reconcile();
    let taken = world.with_image("log", "mirror/log:1").remove(0);
    let other = if taken == "p0" { "p1" } else { "p0" };
    // The runtime goes on reporting the first name of the image.
    let version = world.version();
    let pod = world.pods.get_mut(&taken).unwrap();
    pod["metadata"]["resourceVersion"] = version;
    pod["status"]["containerStatuses"][0]["containerID"] = json!("cri://new");
    world.reconcile();
    assert_eq!(world.image_of(other, "log"), "mirror/log:1");
}

#[test]
fn a_spec_that_changes_again_in_the_middle_takes_no_further_pod_out_of_service() {
    let mut world = World::settled(3);
    world.image("log:2");
    world.reconcile();
    let out = world.with_image("log", "log:2").remove(0);
    // It has restarted and is not ready yet; then the set goes on.
    world.run(&out);
    world.serve(&out, false);
    world.image("log:3");
    world.reconcile();
    assert_eq!(
        world.with_image("log", "log:3"),
        std::slice::from_ref(&out),
        "only the one that is out already"
    );
    world.run(&out);
    world.serve(&out, true);
    world.settle();
    assert_eq!(world.with_image("log", "log:3").len(), 3);
}

#[test]
fn what_the_set_itself_broke_is_mended_before_a_priority_counts() {
    let mut world = World::settled(2);
    for (pod, weight) in [("p0", "low"), ("p1", "high")] {
        world.pods.get_mut(pod).unwrap()["metadata"]["labels"]["weight"] = json!(weight);
    }
    let first =
        json!({"weightPriority": [{"weight": 10, "matchSelector": {"matchLabels": {"weight": "low"}}}]});
    world.strategy("priorityStrategy", first);
    world.image("bad:2");
    world.settle();
    assert_eq!(world.with_image("log", "bad:2"), ["p0"]);
    let first =
        json!({"weightPriority": [{"weight": 10, "matchSelector": {"matchLabels": {"weight": "high"}}}]});
    world.strategy("priorityStrategy", first);
    world.strategy("partition", json!(1));
    world.image("log:3");
    world.settle();
    assert_eq!(
        world.with_image("log", "log:3"),
        ["p0"],
        "the broken one, though the other weighs more"
    );
}

#[test]
fn the_condition_forgets_sets_that_are_gone_and_turns_true_again() {
    let mut world = World::settled(1);
    let condition = json!({"type": "SidecarSetUpgradable", "status": "False", "reason": "UpdateImmutableField",
                           "message": r#"{"gone":false,"logs":false,"removed":false}"#, "lastTransitionTime": text(world.now)});
    world.pods.get_mut("p0").unwrap()["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(condition);
    world.pods.get_mut("p0").unwrap()["metadata"]["annotations"][names::INJECTED_LIST] = json!("logs,gone");
    world.settle();
    let told = (
        "True".to_owned(),
        "AllSidecarsetUpgradable".to_owned(),
        r#"{"logs":true}"#.to_owned(),
    );
    assert_eq!(
        world.upgradable("p0"),
        Some(told),
        "the pod is of the specification again"
    );
}

#[test]
fn the_condition_stays_false_until_every_set_of_the_pod_says_otherwise() {
    let mut world = World::settled(1);
    let condition = json!({"type": "SidecarSetUpgradable", "status": "False", "reason": "UpdateImmutableField",
                           "message": r#"{"other":false}"#, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let pod = world.pods.get_mut("p0").unwrap();
    pod["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(condition);
    pod["metadata"]["annotations"][names::INJECTED_LIST] = json!("logs,other");
    world.image("log:2");
    world.settle();
    let (status, _, message) = world.upgradable("p0").unwrap();
    assert_eq!(
        (status.as_str(), message.as_str()),
        ("False", r#"{"logs":true,"other":false}"#)
    );
}

#[test]
fn every_write_of_a_pod_is_for_the_version_of_it_that_was_looked_at() {
    let mut world = World::settled(3);
    world.strategy("maxUnavailable", json!(3));
    world.image("log:2");
    let plan = world.plan();
    let mut pods = 0;
    for object in &plan.writes {
        for (index, step) in object.steps.iter().enumerate() {
            let Write::Patch {
                precondition,
                target,
                part,
                ..
            } = &step.write
            else {
                continue;
            };
            let version = world.pods[&target.name]["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .to_owned();
            let uid = format!("uid-{}", target.name);
            let expected = if index == 0 {
                Precondition::UidAndVersion(uid, version)
            } else {
                Precondition::VersionFromPreviousStep(uid)
            };
            assert_eq!(*precondition, expected);
            assert_eq!(*part == Part::Status, index == 0, "what is told comes first");
            pods += 1;
        }
    }
    assert_eq!(pods, 6);
}

#[test]
fn two_sets_of_one_pod_take_turns() {
    let mut world = World::settled(1);
    world.image("log:2");
    let mut locks = WriteLocks::default();
    let ours = world.plan();
    let (mut first, mut second) = (ours.clone(), ours.clone());
    locks.lock("logs", &mut first, &Memory::default());
    locks.lock("other", &mut second, &Memory::default());
    assert_eq!(first.writes.len(), ours.writes.len());
    let of_pods = |plan: &kruise_plan_kit::Plan| {
        plan.writes
            .iter()
            .filter(|object| object.steps[0].write.target().name == "p0")
            .count()
    };
    let pod_steps = |plan: &kruise_plan_kit::Plan| {
        let steps = plan.writes.iter().map(|object| &object.steps);
        steps
            .filter(|steps| steps[0].write.target().name == "p0")
            .map(Vec::len)
            .sum::<usize>()
    };
    assert_eq!((of_pods(&first), of_pods(&second)), (1, 0));
    assert!(second.requeue.is_some(), "it comes back");
    // The same set may try again.
    let mut again = ours.clone();
    locks.lock("logs", &mut again, &Memory::default());
    assert_eq!(of_pods(&again), 1);
    // Between its two writes the pod is another version, and still nobody else's.
    assert_eq!(pod_steps(&again), 2);
    world.pods.get_mut("p0").unwrap()["metadata"]["resourceVersion"] = json!("999");
    let mut between = world.plan();
    locks.lock("other", &mut between, &Memory::default());
    assert_eq!(of_pods(&between), 0);
    // Once it plans again without that pod, its writes are done.
    locks.lock("logs", &mut kruise_plan_kit::Plan::default(), &Memory::default());
    let mut later = world.plan();
    locks.lock("other", &mut later, &Memory::default());
    assert_eq!(of_pods(&later), 1);
    // A set that is gone holds nobody.
    let mut third = ours;
    locks.lock("third", &mut third.clone(), &Memory::default());
    locks.release("other");
    locks.lock("third", &mut third, &Memory::default());
    assert_eq!(of_pods(&third), 1);
}

#[test]
fn a_set_whose_upgrade_is_refused_keeps_no_other_set_from_the_pod() {
    let mut world = World::settled(1);
    world.image("log:2");
    let of_pods = |plan: &kruise_plan_kit::Plan| {
        let steps = plan.writes.iter().flat_map(|object| &object.steps);
        steps.filter(|step| step.write.target().name == "p0").count()
    };
    let mut locks = WriteLocks::default();
    let uid = world.pods["p0"]["metadata"]["uid"].as_str().unwrap().to_owned();
    let refused = Memory {
        refused: [(uid, 1)].into(),
        ..Memory::default()
    };
    let mut lock = |set: &str, memory: &Memory| {
        let mut plan = world.plan();
        locks.lock(set, &mut plan, memory);
        of_pods(&plan) > 0
    };
    assert!(lock("logs", &Memory::default()));
    assert!(!lock("other", &Memory::default()), "the write is on its way");
    assert!(lock("logs", &refused), "it tries again");
    assert!(lock("other", &Memory::default()));
    assert!(!lock("logs", &refused), "now the other one writes");
    assert!(
        lock("other", &refused) && lock("logs", &refused),
        "both are refused"
    );
}

#[test]
fn after_a_turn_of_one_write_the_next_version_is_anybodys() {
    let mut world = World::settled(1);
    world.image("log:2");
    world.settle();
    world.image("log:3");
    let mut locks = WriteLocks::default();
    let of_pods = |plan: &kruise_plan_kit::Plan| {
        let steps = plan.writes.iter().flat_map(|object| &object.steps);
        steps.filter(|step| step.write.target().name == "p0").count()
    };
    let (mut first, mut second) = (world.plan(), world.plan());
    locks.lock("logs", &mut first, &Memory::default());
    locks.lock("other", &mut second, &Memory::default());
    assert_eq!((of_pods(&first), of_pods(&second)), (1, 0));
    world.pods.get_mut("p0").unwrap()["metadata"]["resourceVersion"] = json!("999");
    let mut later = world.plan();
    locks.lock("other", &mut later, &Memory::default());
    assert_eq!(of_pods(&later), 1);
}

#[test]
fn a_pod_that_another_set_has_just_changed_is_left_alone_longer_if_its_node_has_done_nothing_about_it() {
    let ended = json!({"terminated": {"exitCode": 0}});
    for (state, seconds) in [(json!({"running": {}}), 120), (ended, 10)] {
        let mut world = World::settled(1);
        let states = json!({"other": {"revision": "h", "updateTimestamp": text(world.now),
                                      "lastContainerStatuses": {"main": {"imageID": "fake://web:1"}}}});
        let mut records: Value = parsed(&world.annotation("p0", names::HASH));
        records["other"] = json!({"hash": "h", "updateTimestamp": text(world.now), "sidecarSetName": "other", "sidecarList": []});
        let pod = world.pods.get_mut("p0").unwrap();
        pod["metadata"]["annotations"][names::INPLACE_STATE] = json!(states.to_string());
        pod["metadata"]["annotations"][names::HASH] = json!(records.to_string());
        pod["spec"]["containers"][1]["image"] = json!("web:2");
        for status in pod["status"]["containerStatuses"].as_array_mut().unwrap() {
            if status["name"] == "main" {
                status["state"] = state.clone();
            }
        }
        world.image("log:2");
        world.now += SignedDuration::from_secs(seconds - 1);
        let plan = world.plan();
        let why = world.why("shop/p0");
        assert!(why.contains("another set"), "{state}: {why}");
        assert_eq!(plan.requeue.map(|wait| wait.as_secs()), Some(1), "{state}");
        world.now += SignedDuration::from_secs(2);
        world.reconcile();
        assert_eq!(world.image_of("p0", "log"), "log:2", "{state}");
        let states: Value = parsed(&world.annotation("p0", names::INPLACE_STATE));
        assert_eq!(states["other"]["revision"], "h", "what the other set wrote stays");
    }
}

#[test]
fn a_change_that_another_set_dates_in_the_future_is_not_waited_for_until_then() {
    for (ahead, waits) in [(3, Some(120)), (3600, None)] {
        let mut world = World::settled(1);
        let then = text(world.now + SignedDuration::from_secs(ahead));
        let states = json!({"other": {"lastContainerStatuses": {"main": {"imageID": "fake://web:1"}}}});
        let mut records: Value = parsed(&world.annotation("p0", names::HASH));
        records["other"] =
            json!({"hash": "h", "updateTimestamp": then, "sidecarSetName": "other", "sidecarList": []});
        let pod = world.pods.get_mut("p0").unwrap();
        pod["metadata"]["annotations"][names::INPLACE_STATE] = json!(states.to_string());
        pod["metadata"]["annotations"][names::HASH] = json!(records.to_string());
        pod["spec"]["containers"][1]["image"] = json!("web:2");
        world.image("log:2");
        let plan = world.plan();
        assert_eq!(plan.requeue.map(|wait| wait.as_secs()), waits, "{ahead}");
        world.reconcile();
        assert_eq!(world.image_of("p0", "log") == "log:2", waits.is_none(), "{ahead}");
    }
}

#[test]
fn a_hot_sidecar_whose_empty_image_changed_is_left_as_it_is() {
    let mut world = World::new();
    world.edit(|spec| spec["containers"] = json!([hot("mesh", "mesh:1", "mesh:empty")]));
    world.add("p0");
    world.settle();
    world.edit(|spec| spec["containers"][0]["upgradeStrategy"]["hotUpgradeEmptyImage"] = json!("mesh:none"));
    world.settle();
    assert_eq!(world.image_of("p0", "mesh-2"), "mesh:empty");
    assert_eq!(world.upgradable("p0").unwrap().0, "False");
}

#[test]
fn the_same_snapshot_gives_the_same_plan() {
    let mut world = World::settled(5);
    world.strategy("maxUnavailable", json!(3));
    world.image("log:2");
    let set = world.set.clone();
    assert_eq!(
        world.plan_with(&set, Explain::Yes),
        world.plan_with(&set, Explain::Yes)
    );
}
