//! Pods that were created before the WorkloadSpread, or past the webhook.

use kruise_plan_kit::Explain;
use serde_json::{Value, json};

use crate::world::{World, in_zone, subset};

const IGNORE: &str = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata";

/// Pods `web-0` and so on, which run on these nodes.
pub(crate) fn running(subsets: Value, nodes: &[&str]) -> World {
    let mut world = World::of_cloneset(nodes.len().try_into().unwrap(), subsets);
    for (index, node) in nodes.iter().enumerate() {
        let name = format!("web-{index}");
        world.pod(&name, &json!({}));
        world.run(&name, node);
    }
    world
}

#[test]
fn pods_that_existed_before_get_annotation_and_metadata_and_keep_their_specification() {
    let mut world = running(
        json!([subset("a", json!(2)), subset("b", Value::Null)]),
        &["a1", "a1", "a2", "a2"],
    );
    let specs: Vec<Value> = world.pods.values().map(|pod| pod["spec"].clone()).collect();
    world.settle();
    for pod in world.pods.values() {
        let metadata = &pod["metadata"];
        assert_eq!(metadata["labels"], json!({"app": "web", "subset": "a"}));
        assert_eq!(metadata["annotations"]["note"], "a");
        let matched = r#"{"name":"web-spread","subset":"a"}"#;
        assert_eq!(metadata["annotations"][crate::world::MATCHED], matched);
    }
    let after: Vec<Value> = world.pods.values().map(|pod| pod["spec"].clone()).collect();
    assert_eq!(specs, after);
    let mut costs: Vec<&str> = world.pods.keys().map(|name| world.cost(name)).collect();
    costs.sort_unstable();
    assert_eq!(costs, ["-100", "-100", "200", "200"]);
    assert_eq!(world.counts(), "a 4/0, b 0/-1");
    assert_eq!(world.reads, 4, "each is read once");
}

#[test]
fn with_the_annotation_to_ignore_metadata_only_the_annotation_is_written() {
    let mut world = running(json!([subset("a", json!(2)), subset("b", Value::Null)]), &["a1"]);
    world.edit(&json!({"metadata": {"annotations": {IGNORE: "True"}}}));
    world.settle();
    assert_eq!(world.subset_of("web-0").unwrap(), "a");
    let metadata = &world.pods["web-0"]["metadata"];
    assert_eq!(
        (&metadata["labels"], &metadata["annotations"]["note"]),
        (&json!({"app": "web"}), &Value::Null)
    );
}

#[test]
fn pods_that_the_webhook_let_pass_are_adopted_by_their_nodes_and_the_rest_goes_first() {
    let mut world = World::of_cloneset(6, json!([subset("a", json!(2))]));
    world.settle();
    for index in 0..6 {
        let name = format!("web-{index}");
        let found = world.create(&name, &json!({}));
        assert_eq!(found.is_some(), index < 2);
        if found.is_none() {
            world.pod(&name, &json!({}));
        }
        world.run(&name, if index < 4 { "a1" } else { "b1" });
    }
    world.settle();
    let costs: Vec<&str> = (0..6)
        .map(|index| world.cost(["web-0", "web-1", "web-2", "web-3", "web-4", "web-5"][index]))
        .collect();
    assert_eq!(costs.iter().filter(|cost| **cost == "100").count(), 2);
    assert_eq!(costs.iter().filter(|cost| **cost == "-100").count(), 2);
    assert_eq!(costs[4..], ["-200", "-200"]);
    assert_eq!(
        (
            world.subset_of("web-3").unwrap().as_str(),
            world.subset_of("web-4")
        ),
        ("a", None)
    );
    assert_eq!(world.reads, 2, "pods on nodes that no subset has are not read");
}

#[test]
fn pods_without_a_node_and_pods_that_ended_stay_as_they_are() {
    let mut world = running(json!([subset("a", json!(2)), subset("b", Value::Null)]), &["a1"]);
    world.edit_pod("web-0", &json!({"status": {"phase": "Succeeded"}}));
    world.pod("web-1", &json!({}));
    world.settle();
    assert_eq!((world.subset_of("web-0"), world.subset_of("web-1")), (None, None));
    assert_eq!((world.cost("web-0"), world.cost("web-1")), ("none", "-300"));
    assert_eq!(world.counts(), "a 0/2, b 0/-1");
}

#[test]
fn the_subset_with_the_preferred_node_wins_then_the_one_whose_patch_changes_nothing_then_the_one_with_room() {
    let any = |name: &str, limit: Value| json!({"name": name, "maxReplicas": limit});
    let mut preferred = any("b", json!(1));
    preferred["preferredNodeSelector"] = json!([{"weight": 1, "preference": in_zone("a")}]);
    let mut world = running(json!([any("a", json!(1)), preferred]), &["a1"]);
    world.settle();
    assert_eq!(world.subset_of("web-0").unwrap(), "b");

    let mut patched = any("b", json!(0));
    patched["patch"] = json!({"metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}}});
    let mut other = any("a", json!(1));
    other["patch"] = json!({"metadata": {"labels": {"app": "other"}}});
    let mut world = running(json!([other, patched]), &["a1"]);
    world.settle();
    assert_eq!(world.subset_of("web-0").unwrap(), "b");

    let mut world = running(json!([any("a", json!(1)), any("b", json!(1))]), &["a1", "a1"]);
    world.settle();
    let of = |name: &str| world.subset_of(name).unwrap();
    assert_eq!((of("web-0").as_str(), of("web-1").as_str()), ("a", "b"));
}

#[test]
fn taints_keep_pods_out_of_subsets_unless_the_pod_or_the_subset_tolerates_them() {
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "gpu", "effect": effect}]}});
    let toleration = json!([{"key": "gpu", "operator": "Exists"}]);
    let plain = || json!([{"name": "a"}]);
    let tolerant = json!([{"name": "a", "tolerations": toleration.clone()}]);
    for (effect, subsets, of_pod, is_adopted) in [
        ("NoSchedule", plain(), json!(null), false),
        ("NoExecute", plain(), json!(null), false),
        ("PreferNoSchedule", plain(), json!(null), true),
        ("NoSchedule", plain(), toleration.clone(), true),
        ("NoSchedule", tolerant, json!(null), true),
    ] {
        let mut world = running(subsets, &["a1"]);
        world.node("a1", &taint(effect));
        world.edit_pod("web-0", &json!({"spec": {"tolerations": of_pod}}));
        world.settle();
        assert_eq!(
            world.subset_of("web-0").is_some(),
            is_adopted,
            "{effect} {of_pod}"
        );
    }
}

#[test]
fn terms_of_a_pod_and_of_a_subset_hold_together() {
    let affinity = |terms: Value| {
        json!({"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}})
    };
    let mut world = running(json!([subset("a", json!(2))]), &["a1", "a1"]);
    world.edit_pod("web-0", &affinity(json!([in_zone("b"), in_zone("a")])));
    world.edit_pod("web-1", &affinity(json!([in_zone("b")])));
    world.settle();
    assert_eq!(
        (world.subset_of("web-0").as_deref(), world.subset_of("web-1")),
        (Some("a"), None)
    );
}

#[test]
fn a_pod_that_fits_no_subset_is_read_again_after_a_minute_at_the_earliest() {
    let mut world = running(json!([{"name": "a", "maxReplicas": 1}]), &["a1"]);
    world.node(
        "a1",
        &json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}),
    );
    world.settle();
    assert_eq!(world.reads, 1);
    world.pass(59);
    world.settle();
    assert_eq!(world.reads, 1);
    world.pass(2);
    world.node("a1", &json!({"spec": {"taints": null}}));
    world.settle();
    assert_eq!((world.reads, world.subset_of("web-0").as_deref()), (2, Some("a")));
}

#[test]
fn many_pods_are_adopted_a_number_at_a_time() {
    let nodes = ["a1"; 70];
    let mut world = running(json!([subset("a", Value::Null)]), &nodes);
    let plan = world.plan(kruise_plan_kit::Explain::No);
    assert!(world.reads == 32 && plan.requeue.is_some());
    world.reads = 0;
    world.settle();
    assert_eq!((world.counts().as_str(), world.reads), ("a 70/-1", 70));
}

#[test]
fn a_pod_of_another_workloadspread_is_taken_over() {
    let mut world = running(json!([subset("a", json!(1))]), &["a1"]);
    let other = r#"{"name":"other","subset":"a"}"#;
    world.edit_pod(
        "web-0",
        &json!({"metadata": {"annotations": {crate::world::MATCHED: other}}}),
    );
    world.settle();
    let matched = &world.pods["web-0"]["metadata"]["annotations"][crate::world::MATCHED];
    assert_eq!(matched, r#"{"name":"web-spread","subset":"a"}"#);
}

#[test]
fn a_pod_of_a_workloadspread_that_goes_before_stays_its_own() {
    let mut world = running(json!([subset("a", json!(1))]), &["a1", "a1"]);
    world.before.insert("other".to_owned());
    let other = r#"{"name":"other","subset":"a"}"#;
    world.edit_pod(
        "web-0",
        &json!({"metadata": {"annotations": {crate::world::MATCHED: other}}}),
    );
    world.settle();
    let annotations = |pod: &str| world.pods[pod]["metadata"]["annotations"].clone();
    assert_eq!(
        annotations("web-0"),
        json!({crate::world::MATCHED: other}),
        "neither subset nor cost"
    );
    assert_eq!(
        annotations("web-1")[crate::world::MATCHED],
        r#"{"name":"web-spread","subset":"a"}"#
    );
    assert_eq!(world.counts(), "a 1/0");
}

#[test]
fn a_pod_that_has_yet_to_be_read_gets_no_cost() {
    let mut world = running(json!([subset("a", json!(1))]), &["a1"; 40]);
    let plan = world.plan(Explain::No);
    let costs = plan.writes.iter().flat_map(|object| &object.steps);
    let costs = costs.filter(|step| step.reason.contains("deletion cost -200"));
    assert_eq!(costs.count(), 0, "40 pods fit, and 32 of them were read");
    world.settle();
    assert_eq!(world.counts(), "a 40/0");
}
