//! Which pods are upgraded, and how many at a time.

use std::time::Duration;

use jiff::SignedDuration;
use kruise_plan_kit::{Plan, ResourceId, sidecars::names};
use kruise_plan_sidecars::Explain;
use kruise_plan_test_kit::text;
use serde_json::json;

use crate::world::World;

#[test]
fn never_more_than_max_unavailable_pods_are_upgraded_and_not_ready() {
    let mut world = World::settled(3);
    world.image("log:2");
    for round in 1..=3 {
        let done = world.reconcile();
        assert_eq!(
            done.iter()
                .filter(|line| line.starts_with("update-in-place"))
                .count(),
            1,
            "{done:?}"
        );
        assert!(
            world.reconcile().is_empty(),
            "the one that was taken has to come back first"
        );
        for pod in world.with_image("log", "log:2") {
            world.run(&pod);
        }
        assert_eq!(world.with_image("log", "log:2").len(), round);
    }
    world.settle();
    assert_eq!(world.set["status"]["updatedPods"], 3);
    assert_eq!(world.set["status"]["readyPods"], 3);
    assert_eq!(world.set["status"]["updatedReadyPods"], 3);
}

#[test]
fn a_first_upgrade_costs_two_requests_and_a_later_one_costs_one() {
    let mut world = World::settled(1);
    world.image("log:2");
    let done = world.reconcile();
    let of_pod: Vec<&String> = done.iter().filter(|line| line.ends_with(" p0")).collect();
    assert_eq!(of_pod, ["tell-upgradable p0", "update-in-place p0"]);
    world.run("p0");
    world.image("log:3");
    let done = world.reconcile();
    let of_pod: Vec<&String> = done.iter().filter(|line| line.ends_with(" p0")).collect();
    assert_eq!(of_pod, ["update-in-place p0"]);
}

#[test]
fn a_partition_in_percent_leaves_so_many_pods_but_always_lets_one_go() {
    for (pods, partition, updated) in [
        (4, json!("50%"), 2),
        (3, json!("99%"), 1),
        (3, json!("100%"), 0),
        (3, json!(2), 1),
        (3, json!(7), 0),
        (1, json!("99%"), 0),
    ] {
        let mut world = World::settled(pods);
        world.strategy("partition", partition.clone());
        world.image("log:2");
        world.settle();
        assert_eq!(
            world.with_image("log", "log:2").len(),
            updated,
            "{partition} of {pods}"
        );
        assert_eq!(world.set["status"]["updatedPods"], updated);
    }
}

#[test]
fn a_partition_that_cannot_be_read_holds_every_pod() {
    let mut world = World::settled(2);
    world.strategy("partition", json!("half"));
    world.image("log:2");
    world.settle();
    assert!(world.with_image("log", "log:2").is_empty());
    assert!(world.why("shop/p0").contains("cannot be read"));
}

#[test]
fn a_change_beyond_images_changes_no_pod_and_tells_each() {
    let mut world = World::settled(2);
    world.image("log:2");
    world.edit(|spec| spec["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]));
    let plan = world.plan();
    let notes: Vec<String> = plan
        .events
        .iter()
        .map(|note| format!("{} {}", note.reason, note.message))
        .collect();
    assert_eq!(
        notes,
        [
            "NotUpgradablePods SidecarSet in-place update detected 2 not upgradable pod(s) in this round, will skip them."
        ]
    );
    world.settle();
    let told = (
        "False".to_owned(),
        "UpdateImmutableField".to_owned(),
        r#"{"logs":false}"#.to_owned(),
    );
    for pod in ["p0", "p1"] {
        assert_eq!(world.image_of(pod, "log"), "log:1");
        assert_eq!(world.upgradable(pod), Some(told.clone()));
        assert!(
            world
                .why(&format!("shop/{pod}"))
                .contains("cannot be upgraded in place")
        );
    }
    world.add("new");
    world.settle();
    assert_eq!(world.set["status"]["matchedPods"], 3);
    assert_eq!(world.set["status"]["updatedPods"], 1);
}

#[test]
fn a_status_names_a_generation_once_its_conditions_of_pods_are_written() {
    let observed = |world: &World| {
        let status = &world.set["status"]["observedGeneration"];
        (*status == world.set["metadata"]["generation"], status.clone())
    };
    let edit = |world: &mut World| {
        world.edit(|spec| spec["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]));
    };
    let mut world = World::settled(2);
    let created = text(world.now);
    world.pods.get_mut("p1").unwrap()["metadata"]["creationTimestamp"] = json!(created);
    let (_, before) = observed(&world);
    edit(&mut world);
    world.reconcile();
    assert!(
        ["p0", "p1"].iter().all(|pod| world.upgradable(pod).is_some()),
        "p1 has just been made, and is told at once"
    );
    assert_eq!(
        observed(&world),
        (false, before),
        "the writes may be refused still"
    );
    assert_eq!(
        world.set["status"]["updatedPods"], 0,
        "the counts are those of now"
    );
    world.reconcile();
    assert!(observed(&world).0);

    for (kind, refuses) in [("RollingUpdate", true), ("NotUpdate", false)] {
        let mut world = World::settled(1);
        world.strategy("type", json!(kind));
        if refuses {
            world.refuses.push(("tell-upgradable", "p0".to_owned()));
        }
        edit(&mut world);
        world.reconcile();
        world.reconcile();
        assert!(observed(&world).0, "{kind}: no condition is to be waited for");
    }
}

#[test]
fn a_bad_image_holds_one_pod_and_the_next_image_mends_all() {
    let mut world = World::settled(2);
    world.image("bad:2");
    world.settle();
    assert_eq!(world.with_image("log", "bad:2").len(), 1);
    assert_eq!(world.with_image("log", "log:1").len(), 1);
    world.image("log:3");
    world.settle();
    assert_eq!(world.with_image("log", "log:3").len(), 2);
    assert_eq!(world.set["status"]["updatedReadyPods"], 2);
}

#[test]
fn without_anything_unavailable_only_pods_that_are_not_ready_change() {
    let mut world = World::settled(3);
    world.strategy("maxUnavailable", json!(0));
    world.serve("p1", false);
    world.image("log:2");
    world.settle();
    assert_eq!(world.with_image("log", "log:2"), ["p1"]);
    assert!(
        world.why("shop/p0").contains("maxUnavailable is reached"),
        "{}",
        world.why("shop/p0")
    );
}

/// Names of the pods whose upgrade was written.
fn upgraded(done: &[String]) -> Vec<&str> {
    done.iter()
        .filter_map(|line| line.strip_prefix("update-in-place "))
        .collect()
}

#[test]
fn a_pod_out_of_service_takes_its_place_before_those_that_users_prefer() {
    let mut world = World::settled(4);
    world.strategy("maxUnavailable", json!(2));
    let preferred =
        json!({"weightPriority": [{"weight": 9, "matchSelector": {"matchLabels": {"first": "yes"}}}]});
    world.strategy("priorityStrategy", preferred);
    for pod in ["p0", "p1"] {
        world.pods.get_mut(pod).unwrap()["metadata"]["labels"]["first"] = json!("yes");
    }
    world.serve("p3", false);
    world.image("log:2");
    // It may go whatever the limit is, so that there is room for one of the others.
    let done = world.reconcile();
    assert_eq!(upgraded(&done), ["p0", "p3"]);
    assert!(world.reconcile().is_empty());
}

#[test]
fn a_pod_out_of_service_that_was_refused_waits_for_room_and_takes_none_from_others() {
    let mut world = World::settled(3);
    world.serve("p2", false);
    world.refuses.push(("update-in-place", "p2".to_owned()));
    world.image("log:2");
    let mut order = Vec::new();
    for _ in 0..8 {
        let done = world.reconcile();
        assert!(upgraded(&done).len() <= 1, "{done:?}");
        order.extend(upgraded(&done).into_iter().map(str::to_owned));
        if order.len() == 2 {
            world.refuses.clear();
        } else if order == ["p0"] && upgraded(&done).len() == 1 {
            let why = world.why("shop/p2");
            assert!(why.contains("maxUnavailable is reached"), "{why}");
        }
        for pod in world.with_image("log", "log:2") {
            world.run(&pod);
        }
    }
    assert_eq!(order, ["p0", "p1", "p2"]);
}

#[test]
fn a_share_of_max_unavailable_is_rounded_up_and_one_is_the_default() {
    for (limit, chosen) in [
        (json!("34%"), 2),
        (json!("100%"), 4),
        (json!(3), 3),
        (json!(null), 1),
    ] {
        let mut world = World::settled(4);
        world.strategy("maxUnavailable", limit.clone());
        world.image("log:2");
        world.reconcile();
        assert_eq!(world.with_image("log", "log:2").len(), chosen, "{limit}");
    }
}

#[test]
fn nothing_is_upgraded_while_paused_or_when_a_set_only_injects() {
    for (name, value, why) in [
        ("paused", json!(true), "upgrades are paused"),
        ("type", json!("NotUpdate"), "injects only"),
    ] {
        let mut world = World::settled(2);
        world.strategy(name, value);
        world.image("log:2");
        world.settle();
        assert!(world.with_image("log", "log:2").is_empty());
        assert!(world.why("").contains(why), "{}", world.why(""));
        assert_eq!(world.set["status"]["updatedPods"], 0);
        assert_eq!(world.set["status"]["matchedPods"], 2);
    }
}

#[test]
fn a_selector_names_the_only_pods_that_are_upgraded() {
    let mut world = World::settled(3);
    world.pods.get_mut("p1").unwrap()["metadata"]["labels"]["canary"] = json!("yes");
    world.strategy("selector", json!({"matchLabels": {"canary": "yes"}}));
    world.image("log:2");
    world.settle();
    assert_eq!(world.with_image("log", "log:2"), ["p1"]);
    assert!(world.why("shop/p0").contains("selector does not match"));
}

/// Pods that are made `canary: yes`.
fn canaries(world: &mut World, pods: &[&str]) {
    for pod in pods {
        world.pods.get_mut(*pod).unwrap()["metadata"]["labels"]["canary"] = json!("yes");
    }
    world.strategy("selector", json!({"matchLabels": {"canary": "yes"}}));
}

#[test]
fn a_pod_that_never_ran_and_is_not_selected_holds_up_none_that_is() {
    let mut world = World::settled(3);
    canaries(&mut world, &["p1", "p2"]);
    let pending = world.pods.get_mut("p0").unwrap();
    pending["spec"]["nodeName"] = json!(null);
    pending["status"] = json!({"phase": "Pending"});
    world.image("log:2");
    world.settle();
    assert_eq!(world.with_image("log", "log:2"), ["p1", "p2"]);
}

#[test]
fn an_old_pod_that_cannot_follow_and_crashes_holds_up_no_newer_one() {
    let mut world = World::settled(2);
    world.image("log:2");
    world.settle();
    world.edit(|spec| spec["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]));
    world.add("new");
    world.settle();
    world.serve("p0", false);
    world.image("log:3");
    world.settle();
    assert_eq!(world.with_image("log", "log:3"), ["new"]);
}

#[test]
fn an_old_pod_that_is_not_selected_and_crashes_holds_up_none_that_is() {
    let mut world = World::settled(2);
    world.image("log:2");
    world.settle();
    canaries(&mut world, &["p1"]);
    world.serve("p0", false);
    world.image("log:3");
    world.settle();
    assert_eq!(world.with_image("log", "log:3"), ["p1"]);
}

#[test]
fn what_the_set_broke_counts_even_where_it_cannot_be_mended() {
    for is_stranded in [true, false] {
        let mut world = World::settled(2);
        world.image("bad:2");
        world.settle();
        let broken = world.with_image("log", "bad:2");
        if is_stranded {
            world.edit(|spec| {
                spec["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
                spec["containers"][0]["image"] = json!("log:3");
            });
            world.add("new");
        } else {
            let other = if broken == ["p0"] { "p1" } else { "p0" };
            canaries(&mut world, &[other]);
        }
        world.image("log:4");
        world.settle();
        assert!(world.with_image("log", "log:4").is_empty(), "{is_stranded}");
        world.pods.remove(&broken[0]);
        world.settle();
        assert_eq!(world.with_image("log", "log:4").len(), 1, "{is_stranded}");
    }
}

#[test]
fn a_pod_that_was_just_made_is_left_alone_for_a_moment() {
    let mut world = World::settled(1);
    world.image("log:2");
    // Another replica has seen this edit already, and the pod is of it.
    let seen = world.set.clone();
    world.edit(|spec| spec["containers"][0]["image"] = json!("log:3"));
    world.add("new");
    world.pods.get_mut("new").unwrap()["metadata"]["creationTimestamp"] = json!(text(world.now));
    world.pods.remove("p0");
    let plan = world.plan_with(&seen, Explain::Yes);
    let writes_pods = |plan: &Plan| {
        let mut writes = plan.writes.iter().flat_map(|object| &object.steps);
        writes.any(|step| step.write.target().resource == ResourceId::PODS)
    };
    assert!(!writes_pods(&plan), "{:?}", plan.writes);
    assert_eq!(plan.requeue, Some(Duration::from_secs(5)));
    world.now += SignedDuration::from_secs(5);
    assert!(writes_pods(&world.plan_with(&seen, Explain::No)));
    assert!(!writes_pods(&world.plan()), "it is up to date");
}

#[test]
fn weights_and_ordered_labels_decide_who_is_first() {
    let order = |strategy: serde_json::Value| {
        let mut world = World::settled(3);
        for (pod, zone, place) in [("p0", "a", "1"), ("p1", "b", "10"), ("p2", "b", "9")] {
            let labels = &mut world.pods.get_mut(pod).unwrap()["metadata"]["labels"];
            labels["zone"] = json!(zone);
            labels["place"] = json!(format!("web-{place}"));
        }
        world.strategy("priorityStrategy", strategy);
        world.image("log:2");
        let mut order = Vec::new();
        while order.len() < 3 {
            world.reconcile();
            let new = world
                .with_image("log", "log:2")
                .into_iter()
                .find(|pod| !order.contains(pod))
                .unwrap();
            world.run(&new);
            order.push(new);
        }
        order
    };
    let weights =
        json!({"weightPriority": [{"weight": 10, "matchSelector": {"matchLabels": {"zone": "b"}}}]});
    assert_eq!(order(weights)[2], "p0");
    let ordered = json!({"orderPriority": [{"orderedKey": "place"}]});
    assert_eq!(order(ordered), ["p1", "p2", "p0"]);
}

#[test]
fn scatter_spreads_pods_of_every_value() {
    let mut world = World::settled(6);
    for (index, zone) in ["a", "a", "a", "b", "b", "b"].into_iter().enumerate() {
        world.pods.get_mut(&format!("p{index}")).unwrap()["metadata"]["labels"]["zone"] = json!(zone);
    }
    world.strategy("scatterStrategy", json!([{"key": "zone", "value": "*"}]));
    world.strategy("maxUnavailable", json!(2));
    world.image("log:2");
    world.reconcile();
    let zones: Vec<String> = world
        .with_image("log", "log:2")
        .iter()
        .map(|pod| {
            world.pods[pod]["metadata"]["labels"]["zone"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(zones, ["a", "b"], "one of each, not two of one");
}

#[test]
fn an_image_by_digest_is_there_when_the_same_digest_runs() {
    let mut world = World::settled(2);
    world.image("log@sha256:22");
    world.reconcile();
    let [taken] = &world.with_image("log", "log@sha256:22")[..] else {
        panic!("one")
    };
    let taken = taken.clone();
    world.run(&taken);
    let report = |world: &mut World, id: &str| {
        let statuses = world.pods.get_mut(&taken).unwrap()["status"]["containerStatuses"]
            .as_array_mut()
            .unwrap();
        statuses[0]["imageID"] = json!(id);
    };
    report(&mut world, "docker-pullable://log@sha256:11");
    assert!(world.plan().writes.is_empty(), "another digest runs");
    report(&mut world, "docker-pullable://other@sha256:22");
    assert!(world.plan().writes.is_empty(), "of another repository");
    report(&mut world, "docker-pullable://docker.io/library/log@sha256:22");
    assert_eq!(world.plan().writes.len(), 1, "the next one's turn");
}

#[test]
fn pods_of_other_namespaces_other_labels_or_without_the_containers_do_not_count() {
    let mut world = World::settled(4);
    world.edit(|spec| spec["namespaceSelector"] = json!({"matchLabels": {"env": "prod"}}));
    world
        .namespaces
        .insert("shop".into(), [("env".to_owned(), "prod".to_owned())].into());
    world
        .namespaces
        .insert("dev".into(), [("env".to_owned(), "dev".to_owned())].into());
    world.pods.get_mut("p0").unwrap()["metadata"]["namespace"] = json!("dev");
    world.pods.get_mut("p1").unwrap()["metadata"]["labels"] = json!({"app": "other"});
    world.pods.get_mut("p2").unwrap()["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    world.image("log:2");
    world.settle();
    assert_eq!(world.set["status"]["matchedPods"], 1);
    assert_eq!(world.image_of("p3", "log"), "log:2");
    assert_eq!(world.image_of("p0", "log"), "log:1");
}

#[test]
fn ended_and_leaving_pods_are_left_alone() {
    let mut world = World::settled(3);
    world.pods.get_mut("p0").unwrap()["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:59:00Z");
    world.pods.get_mut("p1").unwrap()["status"]["phase"] = json!("Succeeded");
    world.image("log:2");
    world.settle();
    assert_eq!(world.with_image("log", "log:2"), ["p2"]);
    assert_eq!(world.set["status"]["matchedPods"], 1);
}

#[test]
fn annotations_are_patched_with_an_upgrade_by_their_policies() {
    let mut world = World::settled(1);
    let annotations = &mut world.pods.get_mut("p0").unwrap()["metadata"]["annotations"];
    annotations["kept"] = json!("mine");
    annotations["merged"] = json!(r#"{"a":1}"#);
    annotations["over"] = json!("old");
    world.edit(|spec| {
        spec["patchPodMetadata"] = json!([
            {"patchPolicy": "Retain", "annotations": {"kept": "theirs", "new": "n"}},
            {"patchPolicy": "Overwrite", "annotations": {"over": "new"}},
            {"patchPolicy": "MergePatchJson", "annotations": {"merged": "{\"b\":2}"}},
        ]);
    });
    world.settle();
    assert_eq!(
        world.annotation("p0", "over"),
        "old",
        "metadata alone changes no pod"
    );
    world.image("log:2");
    world.settle();
    for (key, value) in [
        ("kept", "mine"),
        ("new", "n"),
        ("over", "new"),
        ("merged", r#"{"a":1,"b":2}"#),
    ] {
        assert_eq!(world.annotation("p0", key), value, "{key}");
    }
}

#[test]
fn pods_of_a_canary_are_not_of_its_base() {
    let mut world = World::settled(3);
    let pod = world.pods.get_mut("p0").unwrap();
    pod["metadata"]["annotations"][names::INJECTED_LIST] = json!("logs-canary");
    pod["metadata"]["labels"]["canary"] = json!("yes");
    world.image("log:2");
    world.settle();
    assert_eq!(world.set["status"]["matchedPods"], 2);
    assert_eq!(world.with_image("log", "log:1"), ["p0"]);
    assert!(
        world.plan().events.is_empty(),
        "it is not without sidecars either"
    );
}

#[test]
fn pods_that_got_an_older_revision_follow_once_upgrades_are_not_paused() {
    let mut world = World::new();
    world.settle();
    world.strategy("paused", json!(true));
    // Made with the revision that the set named, while its containers were others already.
    world.add("p0");
    world.image("log:2");
    world.settle();
    assert_eq!(world.with_image("log", "log:1"), ["p0"]);
    assert_eq!(world.set["status"]["updatedPods"], 0);
    world.strategy("paused", json!(false));
    world.settle();
    assert_eq!(world.with_image("log", "log:2"), ["p0"]);
    assert_eq!(world.set["status"]["updatedReadyPods"], 1);
}
