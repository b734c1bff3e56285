//! Fixed things happen, and the controller runs until it has nothing to do.

use kruise_api::uniteddeployment::Child;
use kruise_plan_kit::{Explain, Intent};
use serde_json::{Value, json};

use crate::world::{REVISION, World, subsets, template};

fn three() -> World {
    let mut world = World::new(Child::CloneSet, 6, &subsets(&["a", "b"]));
    world.settle();
    world.writes();
    world
}

#[test]
fn replicas_are_shared_and_each_subset_has_a_workload_named_after_it() {
    for child in Child::ALL {
        let mut world = World::new(child, 10, &subsets(&["a", "b", "c"]));
        world.settle();
        assert_eq!(world.sizes(), "a=3 b=3 c=4", "{child:?}");
        for (subset, object) in ["a", "b", "c"].map(|subset| (subset, world.workload(subset))) {
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().unwrap();
            let drawn = name.strip_prefix(&format!("api-{subset}-")).unwrap();
            assert_eq!(drawn.len(), 5);
            assert_eq!(metadata["generateName"], format!("api-{subset}-"));
            assert_eq!(metadata["annotations"]["apps.kruise.io/subset-patch"], "");
            let revision = &world.status()["updatedRevision"];
            assert_eq!(
                metadata["labels"],
                json!({"app": "api", "apps.kruise.io/subset-name": subset, REVISION: revision})
            );
            assert_eq!(
                object["spec"]["template"]["metadata"]["labels"],
                metadata["labels"]
            );
            let selector = json!({"matchLabels": {"app": "api", "apps.kruise.io/subset-name": subset}});
            assert_eq!(object["spec"]["selector"], selector);
            let partition = &object["spec"]["updateStrategy"]["rollingUpdate"]["partition"];
            assert_eq!(
                *partition,
                if child == Child::Deployment {
                    Value::Null
                } else {
                    json!(0)
                }
            );
            let owner = json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "UnitedDeployment", "name": "api",
                "uid": "united", "controller": true, "blockOwnerDeletion": true}]);
            assert_eq!(metadata["ownerReferences"], owner);
        }
        let created = format!("SuccessfulUpdateSubset: Create 3 Subset ({})", child.name());
        assert_eq!(world.events, [created]);
        assert_eq!(world.status()["replicas"], 10);
        assert_eq!(world.status()["readyReplicas"], 10);
        assert_eq!(world.status()["labelSelector"], "app=api");
        assert_eq!(world.condition("SubsetProvisioned"), "True");
        assert_eq!(world.condition("SubsetUpdated"), "True");
        assert!(!world.reconcile(), "at rest nothing is written");
    }
}

#[test]
fn subsets_name_replicas_as_numbers_and_percentages() {
    let sizes = json!([{"name": "a", "replicas": 1}, {"name": "b", "replicas": "50%"}, {"name": "c"}]);
    let mut world = World::new(Child::Deployment, 6, &sizes);
    world.settle();
    assert_eq!(world.sizes(), "a=1 b=3 c=2");
    let sizes = json!([{"name": "a", "replicas": "20%"}, {"name": "b", "replicas": "30%"}, {"name": "c", "replicas": "50%"}]);
    let mut world = World::new(Child::Deployment, 10, &sizes);
    world.settle();
    world.scale(7);
    world.settle();
    assert_eq!(world.sizes(), "a=1 b=2 c=4");
}

#[test]
fn a_contradiction_is_reported_and_the_workloads_stay_as_they_are() {
    let sizes = json!([{"name": "a", "replicas": "50%"}, {"name": "b", "replicas": "50%"}]);
    let mut world = World::new(Child::CloneSet, 4, &sizes);
    world.settle();
    world.writes();
    world.scale(3);
    world.settle();
    assert_eq!(world.sizes(), "a=2 b=2");
    assert_eq!(world.writes(), [] as [&str; 0]);
    let event = world.events.last().unwrap();
    assert!(
        event.starts_with("Failed SpecifySubsetReplicas: Specified subset replicas is ineffective: "),
        "{event}"
    );
    let condition = world.condition("SubsetProvisioned");
    assert!(
        condition.starts_with("False Error subsets are to have 4 pods"),
        "{condition}"
    );
    assert_eq!(
        world.status()["observedGeneration"],
        2,
        "the status is written whatever is wrong"
    );
    world.scale(6);
    world.settle();
    assert_eq!(world.sizes(), "a=3 b=3");
    assert_eq!(world.condition("SubsetProvisioned"), "True");
    let mut empty = World::new(Child::CloneSet, 1, &json!([]));
    empty.settle();
    assert!(empty.condition("SubsetProvisioned").starts_with("False Error"));
}

#[test]
fn bounded_subsets_are_filled_in_order() {
    let sizes = json!([{"name": "a", "minReplicas": 0, "maxReplicas": 4}, {"name": "b", "minReplicas": 0}]);
    let mut world = World::new(Child::CloneSet, 5, &sizes);
    for (replicas, expected) in [(5, "a=4 b=1"), (3, "a=3 b=0"), (8, "a=4 b=4")] {
        world.scale(replicas);
        world.settle();
        assert_eq!(world.sizes(), expected);
    }
}

#[test]
fn partitions_hold_pods_of_their_subset_back() {
    for child in [Child::StatefulSet, Child::AdvancedStatefulSet, Child::CloneSet] {
        let mut world = World::new(child, 6, &subsets(&["a", "b"]));
        world.settle();
        let first = world.status()["currentRevision"].clone();
        world.edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 2}));
        world.image("api:2");
        world.settle();
        assert_eq!(world.images("a"), "api:1 api:1 api:2", "{child:?}");
        assert_eq!(world.images("b"), "api:2 api:2 api:2");
        let status = world.status().clone();
        assert_eq!(
            (&status["updatedReplicas"], &status["updatedReadyReplicas"]),
            (&json!(4), &json!(4))
        );
        assert_eq!(status["currentRevision"], first);
        assert_ne!(status["updatedRevision"], first);
        let updated = status["updatedRevision"].as_str().unwrap();
        let updating = format!("False UnitedDeploymentRevisionUpdating updating to revision {updated}");
        assert_eq!(world.condition("UnitedDeploymentUpdated"), updating);
        assert_eq!(world.entry("a")["partition"], 2);
        assert!(!world.reconcile(), "a rollout that is held writes nothing");
        world.edit(|spec| spec["updateStrategy"]["manualUpdate"] = json!({}));
        world.settle();
        assert_eq!(world.images("a"), "api:2 api:2 api:2");
        assert_eq!(world.status()["currentRevision"], status["updatedRevision"]);
        let done = format!("True UnitedDeploymentRevisionUpdated updated to revision {updated}");
        assert_eq!(world.condition("UnitedDeploymentUpdated"), done);
        assert!(!world.reconcile());
    }
}

#[test]
fn a_partition_above_the_replicas_of_its_subset_is_cut() {
    let mut world = three();
    world.edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 9, "b": -1}));
    world.settle();
    assert_eq!(
        world.workload("a")["spec"]["updateStrategy"]["rollingUpdate"]["partition"],
        3
    );
    assert_eq!(world.entry("a")["partition"], 3);
    assert_eq!(
        world.workload("b")["spec"]["updateStrategy"]["rollingUpdate"]["partition"],
        0
    );
}

#[test]
fn a_template_that_comes_back_uses_its_revision_again() {
    let mut world = three();
    let first = world.status()["updatedRevision"].clone();
    world.image("api:2");
    world.settle();
    assert_eq!(world.revisions.len(), 2);
    world.image("api:1");
    world.settle();
    assert_eq!(world.status()["updatedRevision"], first);
    assert_eq!(world.revisions.len(), 2);
    assert_eq!(world.revisions[first.as_str().unwrap()]["revision"], 3);
    assert_eq!(world.images("a"), "api:1 api:1 api:1");
    assert!(!world.reconcile());
}

#[test]
fn revisions_beyond_the_limit_go_and_used_ones_stay() {
    for child in Child::ALL {
        let mut world = World::new(child, 4, &subsets(&["a", "b"]));
        world.edit(|spec| spec["revisionHistoryLimit"] = json!(2));
        world.settle();
        for number in 2..7 {
            world.image(&format!("api:{number}"));
            world.settle();
        }
        assert_eq!(world.revisions.len(), 2, "{child:?}");
        assert!(
            world
                .revisions
                .contains_key(world.status()["updatedRevision"].as_str().unwrap())
        );
    }
    // Pods that a partition holds name the first revision.
    let mut world = World::new(Child::CloneSet, 2, &subsets(&["a"]));
    world.edit(|spec| {
        spec["revisionHistoryLimit"] = json!(1);
        spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 1});
    });
    world.settle();
    let first = world.status()["updatedRevision"].as_str().unwrap().to_owned();
    for number in 2..5 {
        world.image(&format!("api:{number}"));
        world.settle();
    }
    assert!(world.revisions.contains_key(&first));
}

#[test]
fn a_patch_changes_its_subset_only_and_no_revision() {
    let mut world = three();
    let revisions = world.revisions.clone();
    let patch = json!({"spec": {"containers": [{"name": "main", "env": [{"name": "ZONE", "value": "b"}]}]}});
    world.edit(|spec| spec["topology"]["subsets"][1]["patch"] = patch.clone());
    let before = world.pods.clone();
    world.settle();
    assert_eq!(world.revisions, revisions);
    let annotation = world.workload("b")["metadata"]["annotations"]["apps.kruise.io/subset-patch"].clone();
    assert_eq!(annotation, json!(patch.to_string()));
    let container = &world.workload("b")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        *container,
        json!({"name": "main", "image": "api:1", "env": [{"name": "ZONE", "value": "b"}]})
    );
    for (name, pod) in &before {
        let rolled = pod["metadata"]["labels"]["apps.kruise.io/subset-name"] == "b";
        assert_eq!(world.pods[name] != *pod, rolled, "{name}");
    }
    assert!(!world.reconcile());
    world.edit(|spec| {
        drop(
            spec["topology"]["subsets"][1]
                .as_object_mut()
                .unwrap()
                .remove("patch"),
        );
    });
    world.settle();
    let container = &world.workload("b")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(*container, json!({"name": "main", "image": "api:1"}));
}

#[test]
fn a_patch_that_does_not_fit_is_reported_and_holds_its_subset_only() {
    let mut world = three();
    world.edit(|spec| {
        spec["topology"]["subsets"][0]["patch"] = json!({"spec": {"containers": [{"image": "x"}]}});
    });
    world.image("api:2");
    world.settle();
    assert_eq!(
        (world.images("a"), world.images("b")),
        ("api:1 api:1 api:1".into(), "api:2 api:2 api:2".into())
    );
    let condition = world.condition("SubsetUpdated");
    assert!(
        condition.starts_with("False Error the patch of subset a does not fit"),
        "{condition}"
    );
}

#[test]
fn subsets_are_on_their_nodes_and_tolerate_their_taints() {
    let requirement = |zone: &str| json!({"key": "zone", "operator": "In", "values": [zone]});
    let toleration = json!({"key": "edge", "operator": "Exists"});
    let topology = json!([{"name": "a", "nodeSelectorTerm": {"matchExpressions": [requirement("a")]}, "tolerations": [toleration]},
        {"name": "b", "nodeSelectorTerm": {}}]);
    let mut world = World::new(Child::Deployment, 2, &topology);
    world.settle();
    let terms = "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let of = |world: &World, subset: &str| world.workload(subset).pointer(terms).cloned();
    assert_eq!(
        of(&world, "a"),
        Some(json!([{"matchExpressions": [requirement("a")]}]))
    );
    assert_eq!(
        world.workload("a")["spec"]["template"]["spec"]["tolerations"],
        json!([toleration])
    );
    assert_eq!(of(&world, "b"), None);
    let own = json!([{"matchExpressions": [requirement("x")]}, {"matchFields": []}]);
    world.edit(|spec| {
        let pods = &mut spec["template"]["deploymentTemplate"]["spec"]["template"]["spec"];
        pods["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}}});
    });
    world.settle();
    let both = json!([{"matchExpressions": [requirement("x"), requirement("a")]},
        {"matchFields": [], "matchExpressions": [requirement("a")]}]);
    assert_eq!(of(&world, "a"), Some(both));
}

#[test]
fn a_template_of_another_kind_replaces_the_workloads() {
    let mut world = World::new(Child::StatefulSet, 6, &subsets(&["a", "b"]));
    world.settle();
    world.writes();
    world.events.clear();
    world.edit(|spec| spec["template"] = template(Child::CloneSet, "api:1"));
    world.settle();
    let kinds: Vec<Child> = world.workloads.keys().map(|(child, _)| *child).collect();
    assert_eq!(kinds, [Child::CloneSet, Child::CloneSet]);
    assert_eq!(world.sizes(), "a=3 b=3");
    assert_eq!(
        world.events,
        [
            "SuccessfulUpdateSubset: Create 2 Subset (CloneSet)",
            "SuccessfulUpdateSubset: Delete 2 Subset (StatefulSet)"
        ]
    );
}

#[test]
fn subsets_come_and_go_with_the_topology() {
    let mut world = three();
    world.events.clear();
    world.edit(|spec| spec["topology"]["subsets"] = subsets(&["b", "c"]));
    world.settle();
    assert_eq!(world.sizes(), "b=3 c=3");
    assert_eq!(
        world.events,
        [
            "SuccessfulUpdateSubset: Create 1 Subset (CloneSet)",
            "SuccessfulUpdateSubset: Delete 1 Subset (CloneSet)"
        ]
    );
    let names: Vec<&Value> = world.status()["subsetStatuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["name"])
        .collect();
    assert_eq!(names, ["b", "c"], "entries go with their workloads");
}

#[test]
fn a_deleted_workload_is_created_again_and_edited_replicas_are_restored() {
    let mut world = World::new(Child::Deployment, 4, &subsets(&["a", "b"]));
    world.settle();
    let name = world.workload("a")["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    world.workloads.remove(&(Child::Deployment, name.clone()));
    world.settle();
    assert_eq!(world.sizes(), "a=2 b=2");
    assert_ne!(world.workload("a")["metadata"]["name"], name);
    world.touch("b", |workload| workload["spec"]["replicas"] = json!(9));
    world.settle();
    assert_eq!(world.sizes(), "a=2 b=2");
}

#[test]
fn a_workload_that_is_being_deleted_keeps_its_subset_until_it_is_gone() {
    let mut world = three();
    world.touch("a", |workload| {
        workload["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    });
    world.image("api:2");
    world.settle();
    assert_eq!(world.own().len(), 2);
    assert_eq!(world.images("a"), "api:1 api:1 api:1", "what goes is not changed");
}

#[test]
fn a_pod_that_a_statefulset_cannot_update_is_deleted() {
    let mut world = World::new(Child::StatefulSet, 6, &subsets(&["a", "b"]));
    world.broken.insert("api:bad".into());
    world.settle();
    world.edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 2, "b": 3}));
    world.image("api:bad");
    world.settle();
    assert_eq!(world.images("a"), "api:1 api:1 api:bad");
    world.writes();
    world.image("api:2");
    world.settle();
    assert_eq!(world.images("a"), "api:1 api:1 api:2");
    let deleted: Vec<String> = world
        .writes()
        .into_iter()
        .filter(|write| write.starts_with("delete-pod"))
        .collect();
    assert_eq!(
        deleted,
        [format!(
            "delete-pod pods/{}-2",
            world.workload("a")["metadata"]["name"].as_str().unwrap()
        )]
    );
}

#[test]
fn a_refused_write_is_reported_and_made_again() {
    let mut world = World::new(Child::CloneSet, 2, &subsets(&["a"]));
    world.refuses = Some("exceeded quota".into());
    world.settle();
    world.reconcile();
    assert_eq!(world.condition("SubsetProvisioned"), "False Error exceeded quota");
    assert!(world.events[0].starts_with("FailedUpdateSubset: Error updating PodSet (CloneSet) api-a-"));
    world.refuses = None;
    world.settle();
    assert_eq!(
        (world.sizes(), world.condition("SubsetProvisioned")),
        ("a=2".into(), "True".into())
    );
    world.refuses = Some("not now".into());
    world.image("api:2");
    world.settle();
    world.reconcile();
    assert_eq!(world.condition("SubsetUpdated"), "False Error not now");
    world.refuses = None;
    world.settle();
    assert_eq!(
        (world.images("a"), world.condition("SubsetUpdated")),
        ("api:2 api:2".into(), "True".into())
    );
}

#[test]
fn an_error_is_forgotten_with_what_it_was_about() {
    let mut world = three();
    world.refuses = Some("exceeded quota".into());
    world.edit(|spec| spec["topology"]["subsets"] = subsets(&["a", "b", "c"]));
    world.edit(|spec| spec["topology"]["subsets"][2]["replicas"] = json!(0));
    world.settle();
    world.reconcile();
    assert_eq!(world.condition("SubsetProvisioned"), "False Error exceeded quota");
    world.edit(|spec| spec["topology"]["subsets"] = subsets(&["a", "b"]));
    world.settle();
    assert_eq!(world.condition("SubsetProvisioned"), "True");
}

#[test]
fn a_restart_in_the_middle_of_a_rollout_changes_nothing() {
    let mut world = three();
    world.edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 2}));
    world.image("api:2");
    world.reconcile();
    world.memory = kruise_plan_kit::Memory::default();
    world.settle();
    world.memory = kruise_plan_kit::Memory::default();
    assert!(!world.reconcile());
    assert_eq!((world.own().len(), world.revisions.len()), (2, 2));
}

#[test]
fn one_that_is_being_deleted_is_left_to_the_garbage_collector() {
    let mut world = three();
    world.united["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    world.image("api:2");
    assert!(!world.reconcile());
}

#[test]
fn without_a_template_nothing_is_done_and_the_status_says_so() {
    let mut world = three();
    world.edit(|spec| spec["template"] = json!({}));
    world.settle();
    assert_eq!(world.writes(), [] as [&str; 0]);
    assert!(world.condition("SubsetProvisioned").starts_with("False Error"));
    assert!(world.events.last().unwrap().starts_with("InvalidSpec"));
}

#[test]
fn a_selector_of_expressions_alone_works() {
    let mut world = World::new(Child::CloneSet, 2, &subsets(&["a"]));
    let expressions = json!([{"key": "app", "operator": "In", "values": ["api"]}]);
    world.edit(|spec| spec["selector"] = json!({"matchExpressions": expressions}));
    world.settle();
    let selector =
        json!({"matchLabels": {"apps.kruise.io/subset-name": "a"}, "matchExpressions": expressions});
    assert_eq!(world.workload("a")["spec"]["selector"], selector);
    assert_eq!(world.status()["labelSelector"], "app in (api)");
}

#[test]
fn an_explanation_says_what_each_subset_has_and_is_to_have() {
    let mut world = three();
    world.edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 2}));
    world.scale(8);
    let name = world.workload("a")["metadata"]["name"].as_str().unwrap();
    let plan = world.plan(Explain::Yes);
    let lines: Vec<&str> = plan.why.iter().map(|why| why.text.as_str()).collect();
    let expected = format!(
        "subset a has {name} with 3 pods, 3 of them Ready, and is to have 4, of which 2 stay at older revisions"
    );
    assert_eq!(lines[0], expected);
    assert!(world.plan(Explain::No).why.is_empty());
}

#[test]
fn a_stuck_pod_that_has_become_ready_meanwhile_is_not_deleted() {
    let mut world = World::new(Child::StatefulSet, 1, &subsets(&["a"]));
    world.broken.insert("api:bad".into());
    world.image("api:bad");
    world.settle();
    world.image("api:2");
    world.reconcile();
    let plan = world.plan(Explain::No);
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    assert_eq!(
        steps
            .filter(|step| step.write.intent() == Intent::DELETE_POD)
            .count(),
        1
    );
    let (name, mut pod) = world.pods.pop_first().unwrap();
    pod["metadata"]["resourceVersion"] = json!("999999");
    pod["status"]["conditions"][0]["status"] = json!("True");
    world.pods.insert(name.clone(), pod);
    world.execute(plan);
    assert!(world.pods.contains_key(&name));
}
