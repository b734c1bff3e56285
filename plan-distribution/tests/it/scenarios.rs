//! The scenarios of the specification, and what they leave open.

use std::time::Duration;

use go_compat::sha256;
use kruise_plan_kit::{Explain, ResourceId};
use serde_json::{Value, json};

use crate::world::World;

const HASH: &str = "kruise.io/resourcedistribution.resource.hashcode";
const FROM: &str = "kruise.io/resourcedistribution.resource.from";

fn list(names: &[&str]) -> Value {
    let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"list": list})
}

fn team(team: &str) -> Value {
    json!({"matchLabels": {"team": team}})
}

pub(crate) fn everywhere() -> Value {
    json!({"allNamespaces": true})
}

/// A Secret of somebody else.
fn foreign(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "reg", "namespace": namespace},
        "type": "Opaque", "data": {"token": "bWluZQ=="}})
}

/// `pull` in `a`, `b` and `c`.
pub(crate) fn distributed() -> World {
    let mut world = World::new(&["a", "b", "c"]);
    world.distribute("pull", &json!({}), &everywhere());
    world.settle();
    assert_eq!(world.copied("pull"), "a b c");
    world.written.clear();
    world
}

#[test]
fn named_and_selected_namespaces_less_the_excluded_have_a_copy() {
    let mut world = World::new(&["n1 one", "n2 one", "n3 one", "n4 one", "n5 two", "n6 two"]);
    let targets = json!({"includedNamespaces": list(&["n1", "n5"]), "excludedNamespaces": list(&["n3"]),
        "namespaceSelector": team("one")});
    world.distribute("pull", &json!({}), &targets);
    world.settle();
    assert_eq!(world.copied("pull"), "n1 n2 n4 n5");
    assert_eq!(world.report("pull"), "4 4 0");
    let kinds: Vec<&str> = world.status("pull")["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "GetResourceFailed",
            "CreateResourceFailed",
            "UpdateResourceFailed",
            "DeleteResourceFailed",
            "ConflictOccurred",
            "NamespaceNotExists"
        ]
    );
    assert_eq!(
        (world.written.len(), world.reports),
        (4, 1),
        "a write each, and one report"
    );
    assert_eq!(world.reads.get(), 0, "what was written need not be read");
    assert_eq!(world.events, ["Distributed: Secret reg is in all 4 namespaces"]);
}

#[test]
fn a_copy_is_marked_with_its_origin_and_controlled_by_it() {
    let mut world = World::new(&["a"]);
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "node", "controller": true});
    let other = json!({"apiVersion": "v1", "kind": "Node", "name": "m", "uid": "other"});
    let metadata =
        json!({"labels": {"app": "x"}, "annotations": {"note": "<y>"}, "ownerReferences": [owner, other]});
    world.distribute(
        "pull",
        &json!({"metadata": metadata, "newer": [1]}),
        &everywhere(),
    );
    world.settle();
    let copy = world.copy("a");
    let raw = r#"{"apiVersion":"v1","data":{"token":"dG9rZW4="},"kind":"Secret","metadata":{"annotations":{"note":"\u003cy\u003e"},"labels":{"app":"x"},"name":"reg","ownerReferences":[{"apiVersion":"v1","controller":true,"kind":"Node","name":"n","uid":"node"},{"apiVersion":"v1","kind":"Node","name":"m","uid":"other"}]},"newer":[1],"type":"Opaque"}"#;
    let hash = sha256::hex(raw.as_bytes());
    assert_eq!(
        copy["metadata"]["annotations"],
        json!({HASH: hash, FROM: "pull", "note": "<y>"})
    );
    assert_eq!(copy["metadata"]["labels"], json!({"app": "x"}));
    let uid = copy["metadata"]["ownerReferences"][1]["uid"].clone();
    let ours = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "name": "pull",
        "uid": uid, "controller": true, "blockOwnerDeletion": true});
    assert_eq!(copy["metadata"]["ownerReferences"], json!([other, ours]));
    assert_eq!(copy["newer"], json!([1]), "fields of newer versions are copied");
}

#[test]
fn a_new_namespace_gets_a_copy_and_one_that_is_selected_no_more_loses_it() {
    let mut world = World::new(&["a web", "b web"]);
    world.distribute("pull", &json!({}), &json!({"namespaceSelector": team("web")}));
    world.settle();
    world.namespace("c", "web");
    world.namespace("a", "db");
    world.written.clear();
    world.settle();
    assert_eq!(world.writes(), ["create-copy c/reg", "delete-copy a/reg"]);
    assert_eq!(
        (world.copied("pull"), world.report("pull")),
        ("b c".into(), "2 2 0".into())
    );
}

#[test]
fn an_edit_of_the_data_is_reverted_and_a_deleted_copy_created_again() {
    let mut world = distributed();
    let own = json!({"metadata": {"labels": {"mine": "1"}}, "data": {"token": "eA==", "extra": "eA=="}});
    world.edit(ResourceId::SECRETS, "a", "reg", &own);
    world.delete(ResourceId::SECRETS, "b", "reg");
    world.settle();
    assert_eq!(world.writes(), ["create-copy b/reg", "update-copy a/reg"]);
    assert_eq!(world.copy("a")["data"], json!({"token": "dG9rZW4="}));
    assert_eq!(world.copy("a")["metadata"]["labels"]["mine"], "1");
    assert_eq!(world.report("pull"), "3 3 0");
}

#[test]
fn a_copy_that_is_being_deleted_is_left_alone_until_it_is_gone() {
    let mut world = distributed();
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T01:00:00Z", "finalizers": ["mine/one"]},
        "data": {"token": "eA=="}});
    world.edit(ResourceId::SECRETS, "a", "reg", &leaving);
    world.edit(ResourceId::SECRETS, "b", "reg", &leaving);
    world.change(
        "pull",
        &json!({"spec": {"targets": {"excludedNamespaces": list(&["a"])}}}),
    );
    world.settle();
    assert!(world.writes().is_empty(), "neither updated nor deleted once more");
    assert_eq!((world.report("pull"), world.reads.get()), ("2 2 0".into(), 0));
    let released = json!({"metadata": {"finalizers": null}});
    world.edit(ResourceId::SECRETS, "a", "reg", &released);
    world.edit(ResourceId::SECRETS, "b", "reg", &released);
    world.settle();
    assert_eq!(world.writes(), ["create-copy b/reg"]);
}

#[test]
fn a_named_namespace_that_is_missing_or_leaving_is_reported_and_not_retried() {
    let mut world = World::new(&["a", "b"]);
    world.distribute(
        "pull",
        &json!({}),
        &json!({"includedNamespaces": list(&["a", "b", "gone"])}),
    );
    world.settle();
    assert_eq!(world.report("pull"), "3 2 1, NamespaceNotExists: gone");
    let reason = world.reason("pull", "NamespaceNotExists");
    assert_eq!(reason, "namespace not found or is terminating");
    world.terminate("b");
    world.delete(ResourceId::SECRETS, "b", "reg");
    world.written.clear();
    world.settle();
    assert_eq!(world.report("pull"), "3 1 2, NamespaceNotExists: b gone");
    assert!(world.writes().is_empty());
    let plan = world.plan("pull", Explain::No);
    assert!(plan.requeue.is_none() && plan.writes.is_empty() && plan.status.is_none());
    world.namespace("gone", "");
    world.remove_namespace("b");
    world.settle();
    assert_eq!(world.report("pull"), "3 2 1, NamespaceNotExists: b");
}

#[test]
fn a_foreign_object_is_a_conflict_that_is_left_alone_and_ends_with_it() {
    let mut world = World::new(&["a", "b"]);
    world.put(ResourceId::SECRETS, foreign("a"));
    world.distribute("pull", &json!({}), &everywhere());
    world.settle();
    assert_eq!(world.report("pull"), "2 1 1, ConflictOccurred: a");
    assert_eq!(
        world.reason("pull", "ConflictOccurred"),
        "conflict with existing resources because of the same namespace, group, version, kind and name"
    );
    let events: Vec<_> = world
        .events
        .iter()
        .filter(|event| event.starts_with("ConflictOccurred"))
        .collect();
    assert!(events.iter().all(|event| event.ends_with("stays as it is, in a")) && !events.is_empty());
    assert_eq!(world.copy("a")["data"], json!({"token": "bWluZQ=="}));
    // Nor is it deleted when the namespace is selected no more.
    world.change(
        "pull",
        &json!({"spec": {"targets": {"excludedNamespaces": list(&["a"])}}}),
    );
    world.settle();
    assert_eq!(
        (world.report("pull"), world.copy("a").is_null()),
        ("1 1 0".into(), false)
    );
    world.change(
        "pull",
        &json!({"spec": {"targets": {"excludedNamespaces": null}}}),
    );
    world.settle();
    world.delete(ResourceId::SECRETS, "a", "reg");
    world.settle();
    assert_eq!(world.report("pull"), "2 2 0");
}

#[test]
fn other_data_reaches_all_copies_and_users_labels_and_owners_stay() {
    let mut world = distributed();
    let owners = world.copy("a")["metadata"]["ownerReferences"].clone();
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"});
    let both = json!([owners[0], other]);
    let own = json!({"metadata": {"labels": {"mine": "1"}, "annotations": {"mine": "2"}, "ownerReferences": both,
        "finalizers": ["mine/one"]}});
    world.edit(ResourceId::SECRETS, "a", "reg", &own);
    world.settle();
    assert!(world.writes().is_empty(), "what users add is theirs");
    let resource =
        json!({"data": {"token": "eA==", "second": "eQ=="}, "metadata": {"finalizers": ["ours/one"]}});
    world.change("pull", &json!({"spec": {"resource": resource}}));
    world.settle();
    assert_eq!(
        world.writes(),
        ["update-copy a/reg", "update-copy b/reg", "update-copy c/reg"]
    );
    let copy = world.copy("a");
    assert_eq!(copy["data"], json!({"token": "eA==", "second": "eQ=="}));
    assert_eq!(copy["metadata"]["labels"], json!({"mine": "1"}));
    assert_eq!(copy["metadata"]["annotations"]["mine"], "2");
    assert_eq!(copy["metadata"]["ownerReferences"], both);
    assert_eq!(copy["metadata"]["finalizers"], json!(["mine/one", "ours/one"]));
    assert_eq!(
        copy["metadata"]["annotations"][HASH],
        world.copy("b")["metadata"]["annotations"][HASH]
    );
    assert_eq!(world.report("pull"), "3 3 0");
    assert_eq!(world.status("pull")["observedGeneration"], 2);
}

#[test]
fn labels_and_annotations_of_the_manifest_reach_copies_and_are_kept() {
    let mut world = distributed();
    let metadata = json!({"labels": {"app": "x"}, "annotations": {"note": "y"}});
    world.change("pull", &json!({"spec": {"resource": {"metadata": metadata}}}));
    world.settle();
    assert_eq!(world.writes().len(), 3);
    assert_eq!(world.copy("b")["metadata"]["labels"], json!({"app": "x"}));
    let mine = json!({"metadata": {"labels": {"app": "mine"}, "annotations": {"note": null}}});
    world.edit(ResourceId::SECRETS, "b", "reg", &mine);
    world.settle();
    assert_eq!(world.writes(), ["update-copy b/reg"]);
    assert_eq!(world.copy("b")["metadata"]["labels"], json!({"app": "x"}));
    assert_eq!(world.copy("b")["metadata"]["annotations"]["note"], "y");
    // A label that the manifest has no more is not removed: it may be somebody else's by now.
    world.change(
        "pull",
        &json!({"spec": {"resource": {"metadata": {"labels": null}}}}),
    );
    world.settle();
    assert!(world.writes().is_empty());
}

#[test]
fn system_namespaces_get_no_copy_even_if_they_are_named() {
    let mut world = World::new(&["a", "default", "kube-node-lease", "kube-public", "kube-system"]);
    let mut targets = everywhere();
    targets["includedNamespaces"] = list(&["kube-system"]);
    world.distribute("pull", &json!({}), &targets);
    world.settle();
    assert_eq!(world.copied("pull"), "a default kube-node-lease");
    assert_eq!(world.report("pull"), "3 3 0");
}

#[test]
fn a_copy_in_a_system_namespace_is_removed_with_an_event_unless_an_annotation_keeps_it() {
    let annotated = |value: &str| json!({"metadata": {"annotations": {"apps.kruise.io/resourcedistribution-system-namespaces": value}}});
    let mut world = World::new(&["a", "kube-system"]);
    world.distribute("pull", &json!({}), &everywhere());
    world.change("pull", &annotated("true"));
    world.settle();
    assert_eq!(
        (world.copied("pull"), world.report("pull")),
        ("a kube-system".into(), "2 2 0".into())
    );
    world.events.clear();
    world.change("pull", &annotated("yes"));
    world.settle();
    assert_eq!(world.copied("pull"), "a");
    let removed = "SystemNamespaceCopyRemoved: Secret reg was deleted in kube-system, because system namespaces get no copy";
    assert!(world.events.contains(&removed.to_owned()), "{:?}", world.events);
}

#[test]
fn empty_targets_and_an_empty_selector_select_nothing() {
    for targets in [json!({}), Value::Null, json!({"namespaceSelector": {}})] {
        let mut world = World::new(&["a"]);
        world.distribute("pull", &json!({}), &targets);
        world.settle();
        assert_eq!((world.report("pull"), world.written.len()), ("0 0 0".into(), 0));
        assert!(world.events.is_empty());
    }
}

#[test]
fn a_deleted_distribution_leaves_its_copies_to_the_garbage_collector() {
    let mut world = distributed();
    world.remove_namespace("c");
    world.namespace("c", "");
    world.put(ResourceId::SECRETS, foreign("c"));
    world.change("pull", &json!({"metadata": {"deletionTimestamp": "2026-01-01T01:00:00Z", "finalizers": ["foregroundDeletion"]}}));
    world.delete(ResourceId::SECRETS, "a", "reg");
    world.settle();
    assert!(
        world.writes().is_empty(),
        "what the collector deletes is not created again"
    );
    world.withdraw("pull");
    world.settle();
    assert!(world.copy("a").is_null() && world.copy("b").is_null() && !world.copy("c").is_null());
}

#[test]
fn a_type_that_changed_is_refused_and_a_copy_that_cannot_be_deleted_is_reported() {
    let mut world = distributed();
    world.change(
        "pull",
        &json!({"spec": {"resource": {"type": "kubernetes.io/tls"}}}),
    );
    for _ in 0..3 {
        let plan = world.plan("pull", Explain::No);
        world.execute("pull", plan);
    }
    assert_eq!(world.report("pull"), "3 0 3, UpdateResourceFailed: a b c");
    assert!(world.reason("pull", "UpdateResourceFailed").contains("immutable"));
    world.change(
        "pull",
        &json!({"spec": {"resource": {"type": "Opaque"}, "targets": {"excludedNamespaces": list(&["c"])}}}),
    );
    world.refuses.insert("c".into(), "no".into());
    world.settle();
    assert_eq!(world.report("pull"), "2 2 0, DeleteResourceFailed: c");
    assert_eq!(world.reason("pull", "DeleteResourceFailed"), "no");
}

#[test]
fn a_secret_written_with_texts_and_without_a_type_is_written_once() {
    let mut world = World::new(&["a", "b"]);
    let resource = json!({"type": null, "data": null, "stringData": {"token": "token"}});
    world.distribute("pull", &resource, &everywhere());
    world.settle();
    assert_eq!(world.writes().len(), 2);
    assert_eq!(world.copy("a")["data"], json!({"token": "dG9rZW4="}));
    assert_eq!(
        (&world.copy("a")["type"], &world.copy("a")["stringData"]),
        (&json!("Opaque"), &Value::Null)
    );
    world.restart();
    world.settle();
    assert_eq!(
        (world.writes().len(), world.reads.get()),
        (0, 2),
        "read again, and found equal"
    );
    world.change(
        "pull",
        &json!({"spec": {"resource": {"stringData": {"token": "other"}}}}),
    );
    world.settle();
    assert_eq!(world.writes().len(), 2);
    assert_eq!(world.copy("b")["data"], json!({"token": "b3RoZXI="}));
}

#[test]
fn a_configmap_with_bytes_is_compared_as_a_whole() {
    let mut world = World::new(&["a"]);
    let resource = json!({"kind": "ConfigMap", "type": null, "data": {"token": null, "k": "v"}, "binaryData": {"b": "Yg=="}});
    world.distribute("pull", &resource, &everywhere());
    world.settle();
    world.edit(
        ResourceId::CONFIG_MAPS,
        "a",
        "reg",
        &json!({"data": null, "binaryData": {"b": "eA=="}}),
    );
    world.written.clear();
    world.settle();
    assert_eq!(world.writes(), ["update-copy a/reg"]);
    let map = world.get(ResourceId::CONFIG_MAPS, "a", "reg").unwrap();
    assert_eq!(
        (&map["data"], &map["binaryData"]),
        (&json!({"k": "v"}), &json!({"b": "Yg=="}))
    );
}

#[test]
fn only_copies_that_changed_are_read_and_never_many_at_a_time() {
    let names: Vec<String> = (0..100).map(|number| format!("n{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names);
    world.distribute("pull", &json!({}), &everywhere());
    world.settle();
    assert_eq!(
        (world.writes().len(), world.reads.get(), world.reports),
        (100, 0, 1)
    );
    world.edit(
        ResourceId::SECRETS,
        "n007",
        "reg",
        &json!({"metadata": {"labels": {"mine": "1"}}}),
    );
    world.settle();
    assert_eq!((world.writes().len(), world.reads.take()), (0, 1));
    world.settle();
    assert_eq!(world.reads.get(), 0);
    world.restart();
    let plan = world.plan("pull", Explain::No);
    assert_eq!(world.reads.take(), 32);
    assert_eq!(plan.requeue, Some(Duration::ZERO));
    world.settle();
    assert_eq!(
        (world.writes().len(), world.reports),
        (0, 1),
        "nothing is written at rest"
    );
}

#[test]
fn of_two_distributions_of_one_name_the_first_wins_and_the_second_reports_it() {
    let mut world = World::new(&["a", "b"]);
    world.distribute("first", &json!({}), &json!({"includedNamespaces": list(&["a"])}));
    world.distribute("second", &json!({"data": {"token": "eA=="}}), &everywhere());
    world.settle();
    assert_eq!(
        (world.copied("first"), world.copied("second")),
        ("a".into(), "b".into())
    );
    assert_eq!(world.report("second"), "2 1 1, ConflictOccurred: a");
    world.withdraw("first");
    world.settle();
    assert_eq!(world.copied("second"), "a b");
}

#[test]
fn a_copy_whose_owner_reference_was_removed_is_somebody_elses() {
    let mut world = distributed();
    world.edit(
        ResourceId::SECRETS,
        "a",
        "reg",
        &json!({"metadata": {"ownerReferences": null}, "data": {"token": "eA=="}}),
    );
    world.settle();
    assert_eq!(world.report("pull"), "3 2 1, ConflictOccurred: a");
    world.change("pull", &json!({"spec": {"targets": {"allNamespaces": false}}}));
    world.settle();
    assert_eq!(world.copy("a")["data"], json!({"token": "eA=="}));
    assert_eq!(
        (world.copied("pull"), world.report("pull")),
        (String::new(), "0 0 0".into())
    );
}

#[test]
fn a_status_with_few_conditions_is_completed() {
    let mut world = distributed();
    let condition = json!({"type": "UpdateResourceFailed", "status": "False", "reason": "Succeeded",
        "lastTransitionTime": "2020-01-01T00:00:00Z"});
    world.change("pull", &json!({"status": {"conditions": [condition]}}));
    world.settle();
    assert_eq!(world.report("pull"), "3 3 0");
    let conditions = &world.status("pull")["conditions"];
    assert_eq!(conditions[2]["lastTransitionTime"], "2020-01-01T00:00:00Z");
}

#[test]
fn what_cannot_be_distributed_yields_an_event_and_no_write() {
    let mut world = World::new(&["a"]);
    world.distribute("pull", &json!({"kind": "Pod"}), &everywhere());
    world.distribute("nameless", &json!({"metadata": {"name": null}}), &everywhere());
    world.settle();
    assert!(world.written.is_empty() && world.reports == 0);
    assert!(
        world
            .events
            .iter()
            .any(|event| event.contains("\"Pod\" of \"v1\"")),
        "{:?}",
        world.events
    );
    assert!(world.events.iter().any(|event| event.contains("has no name")));
}

#[test]
fn an_explanation_has_a_line_for_each_namespace() {
    let mut world = World::new(&["a", "b"]);
    world.put(ResourceId::SECRETS, foreign("b"));
    world.distribute(
        "pull",
        &json!({}),
        &json!({"includedNamespaces": list(&["a", "b", "gone"])}),
    );
    let plan = world.plan("pull", Explain::Yes);
    let lines: Vec<String> = plan
        .why
        .iter()
        .map(|why| format!("{}: {}", why.namespace().unwrap_or("-"), why.text))
        .collect();
    assert_eq!(
        lines,
        [
            "-: distributes Secret reg to 3 namespaces: 0 have it, 1 are about to get it, 2 cannot",
            "b: has an object of that name that is not ours, which stays",
            "gone: does not exist or is being deleted",
        ]
    );
    assert!(plan.writes[0].steps[0].reason.contains("a has no copy"));
    assert!(world.plan("pull", Explain::No).why.is_empty());
}
