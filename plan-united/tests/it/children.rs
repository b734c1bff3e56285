//! Which workloads are written, and how.

use kruise_api::uniteddeployment::Child;
use serde_json::{Value, json};

use crate::world::{SUBSET, World, controller, subsets};

/// A workload with the labels of a subset, and this controller.
fn orphan(namespace: &str, name: &str, subset: &str, owner: Option<&str>) -> Value {
    let owners: Vec<Value> = owner
        .iter()
        .map(|uid| json!({"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": uid, "controller": true}))
        .collect();
    let pods = json!({"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [{"name": "main", "image": "other"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "api", SUBSET: subset}, "ownerReferences": owners,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "api", SUBSET: subset}}, "template": pods}})
}

#[test]
fn an_orphan_of_the_topology_is_adopted_and_then_updated() {
    let mut world = World::new(Child::Deployment, 4, &subsets(&["a", "b"]));
    world.store(Child::Deployment, orphan("shop", "old", "a", None));
    world.settle();
    assert_eq!(world.sizes(), "a=2 b=2");
    assert_eq!(world.workload("a")["metadata"]["name"], "old");
    assert_eq!(world.images("a"), "api:1 api:1");
    let writes = world.writes();
    assert!(
        writes.contains(&"adopt-subset deployments/old".to_owned()),
        "{writes:?}"
    );
}

#[test]
fn what_is_of_others_is_neither_adopted_nor_in_the_way() {
    let mut world = World::new(Child::Deployment, 4, &subsets(&["a", "b"]));
    let mut bare = orphan("shop", "bare", "a", None);
    bare["metadata"]["labels"].as_object_mut().unwrap().remove(SUBSET);
    let mut unselected = orphan("shop", "unselected", "a", None);
    unselected["metadata"]["labels"]["app"] = json!("web");
    let all = [
        (Child::Deployment, bare),
        (Child::Deployment, unselected),
        (Child::Deployment, orphan("other", "elsewhere", "a", None)),
        (Child::Deployment, orphan("shop", "unknown-subset", "c", None)),
        (Child::Deployment, orphan("shop", "theirs", "a", Some("somebody"))),
        (Child::CloneSet, orphan("shop", "other-kind", "a", None)),
    ];
    for (child, object) in &all {
        world.store(*child, object.clone());
    }
    let before = world.workloads.clone();
    world.settle();
    assert_eq!(world.sizes(), "a=2 b=2");
    world.edit(|spec| spec["topology"]["subsets"] = subsets(&["d"]));
    world.image("api:2");
    world.settle();
    for (key, object) in before {
        let now = &world.workloads[&key];
        assert_eq!(
            (&now["metadata"], &now["spec"]),
            (&object["metadata"], &object["spec"])
        );
    }
}

#[test]
fn of_two_workloads_of_a_subset_the_older_stays() {
    let mut world = World::new(Child::CloneSet, 2, &subsets(&["a"]));
    world.settle();
    let name = world.workload("a")["metadata"]["name"].clone();
    let mut twin = world.workload("a").clone();
    twin["metadata"]["name"] = json!("api-a-0twin");
    twin["metadata"]["uid"] = json!("twin");
    twin["metadata"]["creationTimestamp"] = json!("2026-01-01T02:00:00Z");
    world.store(Child::CloneSet, twin);
    world.settle();
    assert_eq!(world.own().len(), 1);
    assert_eq!(world.workload("a")["metadata"]["name"], name);
}

#[test]
fn what_others_set_in_a_workload_stays_and_what_the_template_loses_goes() {
    let mut world = World::new(Child::Deployment, 2, &subsets(&["a"]));
    world.edit(|spec| {
        let template = &mut spec["template"]["deploymentTemplate"];
        template["metadata"]["annotations"] = json!({"team": "one"});
        template["spec"]["minReadySeconds"] = json!(5);
        template["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
        template["spec"]["template"]["spec"]["priorityClassName"] = json!("high");
    });
    world.settle();
    world.touch("a", |object| {
        object["metadata"]["annotations"]["theirs"] = json!("x");
        object["metadata"]["labels"]["theirs"] = json!("x");
        object["spec"]["progressDeadlineSeconds"] = json!(600);
        object["spec"]["template"]["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/restartedAt": "now"});
        object["spec"]["template"]["spec"]["dnsPolicy"] = json!("ClusterFirst");
        object["spec"]["newerField"] = json!({"kept": true});
    });
    world.settle();
    world.writes();
    world.edit(|spec| {
        let template = &mut spec["template"]["deploymentTemplate"];
        template["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
        template["spec"]
            .as_object_mut()
            .unwrap()
            .remove("minReadySeconds");
        template["spec"]["template"]["spec"]["containers"][0]
            .as_object_mut()
            .unwrap()
            .remove("env");
        template["spec"]["template"]["spec"]
            .as_object_mut()
            .unwrap()
            .remove("priorityClassName");
    });
    world.settle();
    let object = world.workload("a");
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    assert_eq!(
        (&metadata["annotations"]["theirs"], &metadata["labels"]["theirs"]),
        (&json!("x"), &json!("x"))
    );
    assert_eq!(
        (&metadata["annotations"]["team"], &spec["minReadySeconds"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&spec["progressDeadlineSeconds"], &spec["newerField"]["kept"]),
        (&json!(600), &json!(true))
    );
    let pods = &spec["template"];
    assert_eq!(
        pods["metadata"]["annotations"],
        json!({"kubectl.kubernetes.io/restartedAt": "now"})
    );
    let expected = json!({"containers": [{"name": "main", "image": "api:1"}], "dnsPolicy": "ClusterFirst"});
    assert_eq!(pods["spec"], expected);
}

#[test]
fn a_workload_whose_revision_is_gone_gets_the_template_whole() {
    let mut world = World::new(Child::Deployment, 1, &subsets(&["a"]));
    world.edit(|spec| {
        spec["template"]["deploymentTemplate"]["spec"]["template"]["spec"]["priorityClassName"] =
            json!("high");
    });
    world.settle();
    world.revisions.clear();
    world.edit(|spec| {
        let pods = &mut spec["template"]["deploymentTemplate"]["spec"]["template"]["spec"];
        pods.as_object_mut().unwrap().remove("priorityClassName");
    });
    world.settle();
    let pods = &world.workload("a")["spec"]["template"]["spec"];
    assert_eq!(*pods, json!({"containers": [{"name": "main", "image": "api:1"}]}));
}

#[test]
fn an_edited_selector_strands_no_workload() {
    let mut world = World::new(Child::Deployment, 2, &subsets(&["a"]));
    world.settle();
    let name = world.workload("a")["metadata"]["name"].clone();
    world.edit(|spec| spec["selector"] = json!({"matchLabels": {"app": "api", "tier": "web"}}));
    world.image("api:2");
    world.settle();
    assert_eq!(world.own().len(), 1);
    assert_eq!(
        (&world.workload("a")["metadata"]["name"], world.images("a")),
        (&name, "api:2 api:2".into())
    );
}

#[test]
fn on_a_cluster_with_older_versions_only_workloads_are_written_in_them() {
    let mut world = World::new(Child::CloneSet, 4, &subsets(&["a", "b"]));
    world.served = "v1alpha1";
    world.edit(|spec| {
        spec["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}});
    });
    world.settle();
    let strategy = world.workload("a")["spec"]["updateStrategy"].clone();
    assert_eq!(world.workload("a")["apiVersion"], "apps.kruise.io/v1alpha1");
    assert_eq!(
        strategy,
        json!({"type": "InPlaceIfPossible", "maxUnavailable": 1, "partition": 0})
    );
    assert!(!world.reconcile());
    world.edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"] = json!({"a": 1}));
    world.image("api:2");
    world.settle();
    assert_eq!(
        (world.images("a"), world.images("b")),
        ("api:1 api:2".into(), "api:2 api:2".into())
    );
    assert_eq!(world.workload("a")["spec"]["updateStrategy"]["partition"], 1);
    assert!(!world.reconcile());
}

#[test]
fn a_cloneset_template_of_the_released_shape_becomes_a_cloneset_of_the_newest() {
    let mut world = World::new(Child::CloneSet, 1, &subsets(&["a"]));
    world.united["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    world.edit(|spec| {
        spec["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] =
            json!({"type": "InPlaceIfPossible", "maxUnavailable": 1});
    });
    world.settle();
    let rolling = json!({"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1, "partition": 0});
    assert_eq!(
        world.workload("a")["spec"]["updateStrategy"]["rollingUpdate"],
        rolling
    );
    // The revision of a manager that stored the older shape means the same.
    let name = world.status()["updatedRevision"].as_str().unwrap().to_owned();
    let data = "/data/spec/template/cloneSetTemplate/spec/updateStrategy";
    *world.revisions.get_mut(&name).unwrap().pointer_mut(data).unwrap() =
        json!({"type": "InPlaceIfPossible", "maxUnavailable": 1});
    world.reports = 0;
    world.writes();
    world.settle();
    assert_eq!((world.writes(), world.reports), (Vec::new(), 0));
}

#[test]
fn names_of_workloads_are_cut_as_servers_cut_them_and_other_names_are_avoided() {
    let mut world = World::new(Child::CloneSet, 1, &subsets(&["a"]));
    let long = "x".repeat(80);
    world.united["metadata"]["name"] = json!(long);
    world.settle();
    let name = world.workload("a")["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!((name.len(), &name[..58]), (63, &long[..58]));
    let mut other = World::new(Child::CloneSet, 1, &subsets(&["a"]));
    let plan = other.plan(kruise_plan_kit::Explain::No);
    let create = |plan: &kruise_plan_kit::Plan| {
        let mut steps = plan.writes.iter().flat_map(|object| &object.steps);
        let step = steps.find(|step| step.write.to_string().starts_with("create-subset"));
        step.unwrap().write.target().name.clone()
    };
    let first = create(&plan);
    assert_eq!(
        create(&other.plan(kruise_plan_kit::Explain::No)),
        first,
        "a second plan meets AlreadyExists"
    );
    other.memory.taken_names.insert(first.clone());
    assert_ne!(create(&other.plan(kruise_plan_kit::Explain::No)), first);
}

#[test]
fn a_kind_that_is_not_served_is_reported() {
    let world = World::new(Child::CloneSet, 1, &subsets(&["a"]));
    let united = kruise_api::uniteddeployment::UnitedDeployment::from_value(world.united.clone()).unwrap();
    let memory = kruise_plan_kit::Memory::default();
    let snapshot = kruise_plan_united::Snapshot {
        united: &united,
        api_version: "apps.kruise.io/v1beta1",
        child_api_version: None,
        workloads: &[],
        revisions: &[],
        memory: &memory,
        explain: kruise_plan_kit::Explain::No,
    };
    let plan = kruise_plan_united::plan(&snapshot, world.now);
    let status = plan.status.unwrap().patch.to_string();
    assert!(
        status.contains("the cluster does not serve clonesets.apps.kruise.io"),
        "{status}"
    );
}

#[test]
fn adopted_workloads_keep_their_other_owners() {
    let mut world = World::new(Child::Deployment, 1, &subsets(&["a"]));
    let mut old = orphan("shop", "old", "a", None);
    old["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "x"}]);
    world.store(Child::Deployment, old);
    world.settle();
    let object = world.workload("a");
    assert_eq!(controller(object), "united");
    assert_eq!(object["metadata"]["ownerReferences"].as_array().unwrap().len(), 2);
}

/// API servers fill in what a rolling update is, and refuse it beside another type.
#[test]
fn a_deployment_that_is_to_recreate_its_pods_loses_the_defaults_of_a_rolling_update() {
    let mut world = World::new(Child::Deployment, 2, &subsets(&["a"]));
    world.settle();
    let filled_in =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    world.touch("a", |object| object["spec"]["strategy"] = filled_in);
    world.edit(|spec| {
        spec["template"]["deploymentTemplate"]["spec"]["strategy"] = json!({"type": "Recreate"});
    });
    world.settle();
    assert_eq!(
        world.workload("a")["spec"]["strategy"],
        json!({"type": "Recreate"})
    );
}

/// API servers keep the name of the account in two members, each of which is restored from the other.
#[test]
fn a_service_account_that_leaves_the_template_leaves_both_its_members() {
    let mut world = World::new(Child::Deployment, 2, &subsets(&["a"]));
    let account = |world: &mut World, name: Value| {
        world.edit(|spec| {
            spec["template"]["deploymentTemplate"]["spec"]["template"]["spec"]["serviceAccountName"] = name;
        });
        world.settle();
    };
    let members = |world: &World| {
        let pod = &world.workload("a")["spec"]["template"]["spec"];
        [pod["serviceAccountName"].clone(), pod["serviceAccount"].clone()]
    };
    account(&mut world, json!("first"));
    world.touch("a", |object| {
        object["spec"]["template"]["spec"]["serviceAccount"] = json!("first");
    });
    account(&mut world, json!("second"));
    assert_eq!(members(&world), [json!("second"), json!("second")]);
    account(&mut world, Value::Null);
    assert_eq!(members(&world), [Value::Null, Value::Null]);
}

#[test]
fn a_long_name_is_cut_between_two_letters() {
    let name = "zürich".repeat(12);
    let mut world = World::new(Child::Deployment, 1, &subsets(&[&name]));
    world.settle();
    let made = world.workload(&name)["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(made.starts_with("api-zürich") && made.len() <= 63, "{made}");
}

#[test]
fn a_workload_of_another_kind_stays_while_its_successor_cannot_be_made() {
    let mut world = World::new(Child::StatefulSet, 2, &subsets(&["a"]));
    world.settle();
    let before = world.workload("a")["metadata"]["uid"].clone();
    world.edit(|spec| {
        spec["template"] = crate::world::template(Child::Deployment, "api:1");
        spec["topology"]["subsets"] =
            json!([{"name": "a", "patch": {"spec": {"containers": [{"image": "x"}]}}}]);
    });
    for _ in 0..3 {
        world.reconcile();
    }
    let uids: Vec<&Value> = world
        .workloads
        .values()
        .map(|object| &object["metadata"]["uid"])
        .collect();
    assert_eq!(uids, [&before]);
    world.edit(|spec| spec["topology"]["subsets"] = subsets(&["a"]));
    world.settle();
    assert_eq!(world.own().len(), 1);
    assert_eq!(world.workload("a")["kind"], "Deployment");
}
