//! Counts and costs of pods that pass the webhook.

use serde_json::{Value, json};

use crate::world::{World, subset};

const NONE: Value = Value::Null;

fn three_and_three() -> World {
    let mut world = World::of_cloneset(6, json!([subset("a", json!(3)), subset("b", json!(3))]));
    world.settle();
    for index in 0..6 {
        let name = format!("web-{index}");
        world.create(&name, &json!({}));
        world.run(&name, if index < 3 { "a1" } else { "b1" });
    }
    world.settle();
    world
}

#[test]
fn six_pods_fill_two_subsets_of_three_with_costs_by_their_order() {
    let mut world = three_and_three();
    assert_eq!(world.counts(), "a 3/0, b 3/0");
    assert_eq!(world.counts_of("versionIgnored").unwrap(), "a 3/0, b 3/0");
    for index in 0..6 {
        let name = format!("web-{index}");
        let (subset, cost) = if index < 3 { ("a", "200") } else { ("b", "100") };
        assert_eq!(world.subset_of(&name).unwrap(), subset);
        assert_eq!(world.cost(&name), cost);
    }
    assert_eq!(world.create("web-6", &json!({})), None, "no subset has room");
    world.pod("web-6", &json!({}));
    let (written, reports) = (world.written.len(), world.reports.len());
    world.settle();
    assert_eq!(
        (world.written.len() - written, world.reports.len()),
        (1, reports),
        "only its cost is new"
    );
    assert_eq!(world.cost("web-6"), "-300");
}

#[test]
fn a_pod_of_a_subset_without_a_limit_is_counted_but_never_missing() {
    let mut world = World::of_cloneset(5, json!([subset("a", json!(2)), subset("b", NONE)]));
    world.settle();
    for index in 0..5 {
        let version = world.spread["metadata"]["resourceVersion"].clone();
        let subset = world.create(&format!("web-{index}"), &json!({})).unwrap();
        let is_recorded = world.spread["metadata"]["resourceVersion"] != version;
        assert_eq!(
            (subset.as_str(), is_recorded),
            if index < 2 { ("a", true) } else { ("b", false) }
        );
    }
    world.settle();
    assert_eq!(world.counts(), "a 2/0, b 3/-1");
}

#[test]
fn smaller_limits_make_the_surplus_go_first() {
    let mut world = three_and_three();
    // The youngest Ready goes first.
    world.pass(10);
    world.run("web-1", "a1");
    world.edit(&json!({"spec": {"subsets": [subset("a", json!(2)), subset("b", json!(2))]}}));
    world.scale(4);
    world.settle();
    assert_eq!(
        ["web-0", "web-1", "web-2"].map(|name| world.cost(name)),
        ["200", "-100", "200"]
    );
    let costs = ["web-3", "web-4", "web-5"].map(|name| world.cost(name).to_owned());
    assert_eq!(
        costs.iter().filter(|cost| *cost == "-200").count(),
        1,
        "{costs:?}"
    );
    assert_eq!(costs.iter().filter(|cost| *cost == "100").count(), 2, "{costs:?}");
    assert_eq!(world.counts(), "a 3/0, b 3/0");
    let surplus = (3..6)
        .find(|index| world.cost(&format!("web-{index}")) == "-200")
        .unwrap();
    for name in ["web-1".to_owned(), format!("web-{surplus}")] {
        world.delete(&name);
        world.pods.remove(&name);
    }
    world.settle();
    assert_eq!(world.counts(), "a 2/0, b 2/0");
}

#[test]
fn pods_of_a_subset_that_was_removed_go_before_all_others_and_are_never_labelled_anew() {
    let mut world = three_and_three();
    world.edit(&json!({"spec": {"subsets": [subset("a", json!(3))]}}));
    world.settle();
    assert_eq!((world.cost("web-0"), world.cost("web-4")), ("100", "-200"));
    assert_eq!(world.subset_of("web-4").unwrap(), "b");
    assert_eq!(world.counts(), "a 3/0");
    assert_eq!(world.reads, 0);
}

#[test]
fn what_the_webhook_recorded_counts_until_its_pod_is_seen() {
    let mut world = World::of_cloneset(3, json!([subset("a", json!(3)), subset("b", NONE)]));
    world.settle();
    let first = world.admit("web-0", &json!({})).unwrap();
    let second = world.admit("", &json!({})).unwrap();
    assert_eq!(second.uid, "request");
    world.settle();
    assert_eq!(
        world.counts_of("versionIgnored").unwrap(),
        "a 0/1 +request +web-0, b 0/-1"
    );
    world.arrive("web-0", Some(&first), &json!({}));
    world.arrive("web-x7f", Some(&second), &json!({}));
    world.settle();
    assert_eq!(world.counts_of("versionIgnored").unwrap(), "a 2/1, b 0/-1");
    world.pass(60);
    world.settle();
    assert!(world.events.is_empty(), "{:?}", world.events);
}

#[test]
fn a_pod_that_is_never_created_frees_its_place_after_30_seconds_and_an_event_says_so() {
    let mut world = World::of_cloneset(3, json!([subset("a", json!(1)), subset("b", NONE)]));
    world.settle();
    world.admit("web-0", &json!({})).unwrap();
    world.settle();
    assert_eq!(world.counts_of("versionIgnored").unwrap(), "a 0/0 +web-0, b 0/-1");
    let requeue = world.plan(kruise_plan_kit::Explain::No).requeue.unwrap();
    assert_eq!(requeue.as_secs(), 30);
    world.pass(31);
    world.settle();
    assert_eq!(world.counts(), "a 0/1, b 0/-1");
    assert_eq!(
        world.counts_of("versionIgnored"),
        None,
        "a version without pods is dropped"
    );
    let events = ["CreatePodFailed: pod web-0 of subset a was not created within 30 seconds"];
    assert_eq!(world.events, events);
}

#[test]
fn a_deletion_frees_a_place_at_once_and_for_15_seconds_if_it_does_not_happen() {
    let mut world = three_and_three();
    world.delete("web-0");
    world.delete("web-0");
    world.settle();
    assert_eq!(world.counts_of("versionIgnored").unwrap(), "a 3/1 -web-0, b 3/0");
    world.pass(16);
    world.settle();
    assert_eq!(world.counts_of("versionIgnored").unwrap(), "a 3/0, b 3/0");
    let events = ["DeletePodFailed: pod web-0 of subset a was not deleted within 15 seconds"];
    assert_eq!(world.events, events);
}

#[test]
fn a_deletion_of_a_surplus_pod_frees_no_place() {
    let mut world = three_and_three();
    world.edit(&json!({"spec": {"subsets": [subset("a", json!(2)), subset("b", json!(3))]}}));
    world.delete("web-0");
    world.settle();
    assert_eq!(world.counts_of("versionIgnored").unwrap(), "a 3/0 -web-0, b 3/0");
}

#[test]
fn a_record_of_the_webhook_refuses_a_status_that_was_counted_before() {
    let mut world = three_and_three();
    world.pods.remove("web-0");
    let old = world.plan(kruise_plan_kit::Explain::No);
    assert!(old.status.is_some());
    world.delete("web-4");
    let reports = world.reports.len();
    world.execute(old);
    assert_eq!(world.reports.len(), reports);
    world.settle();
    assert_eq!(world.counts_of("versionIgnored").unwrap(), "a 2/1, b 3/1 -web-4");
}

#[test]
fn at_rest_nothing_is_written() {
    let mut world = three_and_three();
    let (written, reports) = (world.written.len(), world.reports.len());
    world.pass(1000);
    world.settle();
    assert_eq!((world.written.len(), world.reports.len()), (written, reports));
    assert!(world.events.is_empty());
}

#[test]
fn a_status_names_only_the_versions_that_changed() {
    let mut world = three_and_three();
    world.pods.remove("web-0");
    world.settle();
    let patch = world.reports.last().unwrap();
    let members: Vec<&String> = patch["status"].as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["observedGeneration", "subsetStatuses", "versionedSubsetStatuses"]
    );
    world.edit(&json!({"spec": {"scheduleStrategy": {"type": "Fixed"}}}));
    world.settle();
    assert_eq!(
        *world.reports.last().unwrap(),
        json!({"status": {"observedGeneration": 2}})
    );
}

#[test]
fn a_single_subset_without_a_limit_takes_all_pods() {
    let mut world = World::of_cloneset(2, json!([subset("a", NONE)]));
    world.create("web-0", &json!({})).unwrap();
    world.create("web-1", &json!({})).unwrap();
    assert_eq!(world.spread["status"], json!({}), "the webhook writes nothing");
    world.settle();
    assert_eq!((world.counts().as_str(), world.cost("web-0")), ("a 2/-1", "100"));
}

#[test]
fn a_new_version_of_a_deployment_fills_the_first_subset_and_the_old_one_leaves_it_first() {
    let mut world = World::new(
        "apps/v1",
        "Deployment",
        4,
        json!([subset("a", json!(2)), subset("b", json!(2))]),
    );
    world.template("web:1");
    world.replica_set("one", "web:1");
    world.settle();
    for index in 0..4 {
        world
            .create(&format!("old-{index}"), &World::of_set("one"))
            .unwrap();
    }
    world.settle();
    assert_eq!(world.counts_of("one").unwrap(), "a 2/0, b 2/0");
    assert_eq!((world.cost("old-0"), world.cost("old-3")), ("200", "100"));
    world.template("web:2");
    world.replica_set("two", "web:2");
    assert_eq!(world.create("new-0", &World::of_set("two")).unwrap(), "a");
    world.settle();
    assert_eq!(world.counts_of("two").unwrap(), "a 1/1, b 0/2");
    assert_eq!(world.counts_of("one").unwrap(), "a 2/0, b 2/0");
    assert_eq!(
        (world.cost("new-0"), world.cost("old-0"), world.cost("old-3")),
        ("200", "100", "200")
    );
    world.pods.retain(|name, _| name.starts_with("new"));
    world.settle();
    assert_eq!(world.counts_of("one"), None, "a version without pods is dropped");
}

#[test]
fn a_deployment_without_a_replica_set_of_its_template_gets_no_costs_and_no_error() {
    let mut world = World::new(
        "apps/v1",
        "Deployment",
        1,
        json!([subset("a", json!(2)), subset("b", NONE)]),
    );
    world.template("web:2");
    world.replica_set("one", "web:1");
    world.create("old-0", &World::of_set("one")).unwrap();
    world.settle();
    assert_eq!(
        (world.cost("old-0"), world.counts().as_str()),
        ("none", "a 1/1, b 0/-1")
    );
    assert!(world.events.is_empty());
}

#[test]
fn a_bare_replica_set_without_a_hash_has_the_newest_version() {
    let mut world = World::new(
        "apps/v1",
        "ReplicaSet",
        2,
        json!([subset("a", json!(1)), subset("b", NONE)]),
    );
    world.settle();
    world.create("web-0", &json!({})).unwrap();
    world.create("web-1", &json!({})).unwrap();
    world.settle();
    assert_eq!((world.cost("web-0"), world.cost("web-1")), ("200", "100"));
}

#[test]
fn a_statefulset_is_counted_without_versions_and_without_costs() {
    let mut world = World::new(
        "apps/v1",
        "StatefulSet",
        5,
        json!([subset("a", json!(2)), subset("b", json!(2)), subset("c", NONE)]),
    );
    for (index, subset) in ["a", "a", "b", "b", "c"].into_iter().enumerate() {
        let matched = kruise_api::workloadspread::Matched {
            name: "web-spread".into(),
            subset: subset.into(),
            uid: String::new(),
        };
        let name = format!("web-{index}");
        world.arrive(&name, Some(&matched), &json!({}));
    }
    world.settle();
    assert_eq!(world.counts(), "a 2/0, b 2/0, c 1/-1");
    assert!(world.typed().status.versioned_subset_statuses.is_empty());
    assert!(world.written.is_empty());
}
