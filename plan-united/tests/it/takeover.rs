//! Objects that OpenKruise stored. Pods and StatefulSets of Kubernetes are not among the project's fixtures: they
//! are made by hand here, as the stored revisions and statuses say that they are.

use std::{fs, path::Path};

use kruise_api::uniteddeployment::Child;
use serde_json::{Value, json};

use crate::world::{REVISION, SUBSET, World, subsets};

fn stored(version: &str, what: &str) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures/upstream")
        .join(version);
    let text = fs::read_to_string(root.join(format!("rest-{what}.json"))).unwrap();
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let is_its = |object: &Value| {
        object["kind"] == "UnitedDeployment"
            || object["metadata"]["ownerReferences"][0]["kind"] == "UnitedDeployment"
    };
    all.into_iter().filter(is_its).collect()
}

/// The StatefulSet of a subset, as all three versions made it.
fn stateful_set(united: &Value, subset: &str, replicas: i32, affinity: Option<&Value>) -> Value {
    let template = &united["spec"]["template"]["statefulSetTemplate"]["spec"]["template"];
    let revision = &united["status"]["currentRevision"];
    let labels = json!({"app": "united", REVISION: revision, SUBSET: subset});
    let mut pods = json!({"metadata": {"labels": labels}, "spec": template["spec"]});
    if let Some(expressions) = affinity {
        pods["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}});
    }
    let name = format!("united-{subset}-xxxxx");
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "generateName": format!("united-{subset}-"), "namespace": "shop", "labels": labels,
            "annotations": {"apps.kruise.io/subset-patch": ""},
            "ownerReferences": [{"apiVersion": united["apiVersion"], "kind": "UnitedDeployment", "name": "united",
                "uid": "united", "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "podManagementPolicy": "OrderedReady", "replicas": replicas, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "united", SUBSET: subset}}, "serviceName": "", "template": pods,
            "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"}}})
}

fn taken_over(version: &str) -> World {
    let mut united = stored(version, "uniteddeployments").remove(0);
    united["metadata"]["uid"] = json!("united");
    united["metadata"]["namespace"] = json!("shop");
    let mut world = World::new(Child::StatefulSet, 3, &subsets(&["a", "b"]));
    let zone = json!([{"key": "type", "operator": "In", "values": ["kwok"]}]);
    world.store(Child::StatefulSet, stateful_set(&united, "a", 2, Some(&zone)));
    world.store(Child::StatefulSet, stateful_set(&united, "b", 1, None));
    for mut revision in stored(version, "controllerrevisions") {
        revision["metadata"]["ownerReferences"][0]["uid"] = json!("united");
        let name = revision["metadata"]["name"].as_str().unwrap().to_owned();
        world.revisions.insert(name, revision);
    }
    world.united = united;
    world.run_workloads();
    world
}

#[test]
fn what_is_stored_is_taken_over_without_a_write() {
    for (version, reports) in [("1.8.4", 1), ("1.9.0", 0), ("main", 0)] {
        let mut world = taken_over(version);
        assert_eq!(world.revisions.len(), 1, "{version}");
        world.settle();
        assert_eq!(world.writes(), [] as [&str; 0], "{version}");
        // 1.8.4 reports no Ready pods of subsets, and no UnitedDeploymentUpdated.
        assert_eq!(
            (world.reports, world.events.len()),
            (reports, 0),
            "{version}: {}",
            world.status()
        );
    }
}

#[test]
fn a_new_revision_has_the_name_labels_and_data_of_openkruise() {
    for version in ["1.8.4", "1.9.0", "main"] {
        let mut world = taken_over(version);
        let revisions = std::mem::take(&mut world.revisions);
        world.settle();
        let (name, theirs) = revisions.first_key_value().unwrap();
        let ours = &world.revisions[name];
        assert_eq!(ours["data"], theirs["data"], "{version}");
        assert_eq!(ours["metadata"]["labels"], theirs["metadata"]["labels"]);
        assert_eq!(ours["revision"], 1);
        // Written by hand, without what Go adds, the template has the same revision.
        let plain = json!({"metadata": {"labels": {"app": "united"}}, "spec": {"selector": {"matchLabels": {"app": "united"}},
            "template": {"metadata": {"labels": {"app": "united"}}, "spec":
                world.united["spec"]["template"]["statefulSetTemplate"]["spec"]["template"]["spec"].clone()}}});
        let mut world = taken_over(version);
        world.revisions.clear();
        world.united["spec"]["template"]["statefulSetTemplate"] = plain;
        world.settle();
        assert!(
            world.revisions.contains_key(name),
            "{version}: {:?}",
            world.revisions.keys()
        );
    }
}

#[test]
fn a_rollout_that_is_half_done_goes_on() {
    let mut world = taken_over("main");
    world.edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 1}));
    world.image("nginx:1.26");
    world.settle();
    assert_eq!(
        (world.images("a"), world.images("b")),
        ("nginx:1.25 nginx:1.26".into(), "nginx:1.26".into())
    );
    // Another manager takes over in the middle: it knows nothing but what is stored.
    world.memory = kruise_plan_kit::Memory::default();
    assert!(!world.reconcile());
    world.edit(|spec| spec["updateStrategy"]["manualUpdate"] = json!({}));
    world.settle();
    assert_eq!(world.images("a"), "nginx:1.26 nginx:1.26");
    assert_eq!(
        world.status()["currentRevision"],
        world.status()["updatedRevision"]
    );
}

/// OpenKruise writes no `disablePVCReuse` where it is false, and so claims are reused.
#[test]
fn claims_of_clonesets_that_are_served_in_the_older_version_only_are_kept() {
    let mut world = World::new(Child::CloneSet, 2, &subsets(&["a"]));
    world.served = "v1alpha1";
    world.united["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    world.edit(|spec| {
        let spec = &mut spec["template"]["cloneSetTemplate"]["spec"];
        spec["scaleStrategy"] = json!({});
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {}}]);
    });
    let disables =
        |world: &World| world.workload("a")["spec"]["scaleStrategy"]["disablePVCReuse"] == json!(true);
    world.settle();
    assert!(!disables(&world), "a new one");
    world.touch("a", |object| object["spec"]["scaleStrategy"] = json!({}));
    world.writes();
    world.settle();
    assert_eq!(world.writes(), [] as [&str; 0]);
    world.image("api:2");
    world.settle();
    assert_eq!(world.images("a"), "api:2 api:2");
    assert_eq!(world.workload("a")["spec"]["scaleStrategy"], json!({}));
    // Who turns it off in the template still can.
    world.edit(|spec| {
        spec["template"]["cloneSetTemplate"]["spec"]["scaleStrategy"] = json!({"disablePVCReuse": true});
    });
    world.settle();
    assert!(disables(&world));
    world.edit(|spec| spec["template"]["cloneSetTemplate"]["spec"]["scaleStrategy"] = json!({}));
    world.settle();
    assert!(!disables(&world), "and on again");
}
