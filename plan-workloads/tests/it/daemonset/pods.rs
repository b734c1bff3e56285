//! New pods, member by member.

use std::sync::Arc;

use kruise_plan_kit::{Explain, Intent, Write};
use kruise_plan_test_kit::{merge, pinned, uid_of};
use serde_json::{Value, json};

use super::world::{API_VERSION, NAMES, SET_UID, World};

/// The pod that a set of this template creates for its only node.
fn created(template: Value, change: impl FnOnce(&mut World)) -> Value {
    let spec = json!({
        "selector": {"matchLabels": {"app": "agent"}}, "template": template,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible"}},
    });
    let mut world = World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap());
    world.join("n1", json!({}), json!([]));
    change(&mut world);
    let plan = world.plan(Explain::No);
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let mut pods = steps.filter_map(|step| match &step.write {
        Write::Create { body, .. } => Some(body.render()).filter(|object| object["kind"] == "Pod"),
        _ => None,
    });
    pods.next().unwrap()
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "agent"}, "annotations": {"note": "x"}, "finalizers": ["example.com/hold"]},
        "spec": {
            "containers": [{"name": "main", "image": "agent:1", "newField": {"kept": true}}],
            "hostNetwork": true,
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]}]}}},
        },
    })
}

#[test]
fn a_new_pod_is_its_template_with_what_a_daemon_needs() {
    let pod = created(template(), |_| ());
    let name = pod["metadata"]["name"].as_str().unwrap();
    assert!(
        name.starts_with("agent-") && name.len() == "agent-".len() + 5,
        "{name}"
    );
    assert_eq!(pod["metadata"]["generateName"], "agent-");
    assert_eq!(pod["metadata"]["annotations"], json!({"note": "x"}));
    assert_eq!(pod["metadata"]["finalizers"], json!(["example.com/hold"]));
    let labels = pod["metadata"]["labels"].as_object().unwrap();
    let keys: Vec<&String> = labels.keys().collect();
    assert_eq!(keys, ["app", "controller-revision-hash"]);
    assert!(
        !labels["controller-revision-hash"].as_str().unwrap().contains('-'),
        "the bare hash"
    );
    let owner = json!({"apiVersion": API_VERSION, "kind": "DaemonSet", "name": "agent", "uid": SET_UID,
                       "controller": true, "blockOwnerDeletion": true});
    assert_eq!(pod["metadata"]["ownerReferences"], json!([owner]));
    assert_eq!(
        pod["spec"]["readinessGates"],
        json!([{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}])
    );
    let mut affinity = pinned("n1");
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
        json!([{"weight": 1, "preference": {}}]);
    assert_eq!(pod["spec"]["affinity"], affinity);
    assert_eq!(pod["spec"]["containers"], template()["spec"]["containers"]);
    let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
    assert_eq!(
        tolerations.len(),
        8,
        "its own, six, and that of the network: {tolerations:?}"
    );
    assert!(pod["spec"]["nodeName"].is_null() && pod["spec"]["schedulerName"].is_null());
}

#[test]
fn a_pod_may_be_created_bound() {
    let pod = created(template(), |world| world.options.by_scheduler = false);
    assert_eq!(pod["spec"]["nodeName"], "n1");
    assert_eq!(pod["spec"]["schedulerName"], "kubernetes.io/daemonset-controller");
    assert_eq!(pod["spec"]["affinity"], template()["spec"]["affinity"]);
}

#[test]
fn null_where_an_affinity_could_be_is_none() {
    for affinity in [
        Value::Null,
        json!({"nodeAffinity": null}),
        json!({"podAffinity": {}}),
    ] {
        let mut template = template();
        template["spec"]["affinity"] = affinity.clone();
        let pod = created(template, |_| ());
        assert_eq!(
            pod["spec"]["affinity"]["nodeAffinity"],
            pinned("n1")["nodeAffinity"],
            "{affinity}"
        );
    }
}

#[test]
fn a_template_generation_is_copied_to_the_pod() {
    let pod = created(template(), |world| {
        world.set["metadata"]["annotations"] = json!({"deprecated.daemonset.template.generation": "3"});
    });
    assert_eq!(pod["metadata"]["labels"]["pod-template-generation"], "3");
}

/// The names of the pods that a plan creates.
fn names(world: &World) -> Vec<String> {
    let plan = world.plan(Explain::No);
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let pods = steps.filter(|step| step.write.intent() == Intent::CREATE_POD);
    pods.map(|step| step.write.target().name.clone()).collect()
}

/// A set whose revision exists, on these nodes.
fn on(nodes: &[&str], spec: &Value) -> World {
    let mut all = json!({"selector": {"matchLabels": {"app": "agent"}}, "template": template()});
    merge(&mut all, spec);
    let mut world = World::new(all, "2026-01-01T00:00:00Z".parse().unwrap());
    for node in nodes {
        world.join(node, json!({}), json!([]));
    }
    world
}

#[test]
fn no_pod_has_the_name_of_the_one_before_it_and_a_plan_that_is_made_again_the_same() {
    let mut world = on(&["n1"], &json!({}));
    let mut given: Vec<String> = Vec::new();
    for round in 0..8 {
        let [name] = names(&world).try_into().unwrap();
        assert_eq!(
            names(&world),
            [&*name],
            "an old snapshot meets the pod that there is"
        );
        assert!(!given.contains(&name), "{name} after {given:?}");
        given.push(name.clone());
        let plan = world.plan(Explain::No);
        world.execute(&plan);
        if round % 2 == 0 {
            // A plan sees it before it goes.
            let plan = world.plan(Explain::No);
            world.execute(&plan);
        } else {
            let uid = world.pods[&name]["metadata"]["uid"].as_str().unwrap().to_owned();
            world.memory.created = Arc::new([(name.clone(), uid)].into());
        }
        world.pods.remove(&name);
    }
}

#[test]
fn a_pod_that_comes_beside_an_old_one_is_named_after_it() {
    let surge = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}});
    let mut world = on(&["n1"], &surge);
    let plan = world.plan(Explain::No);
    world.execute(&plan);
    let [old] = world.pods.keys().cloned().collect::<Vec<_>>().try_into().unwrap();
    world.work(std::slice::from_ref(&old));
    world.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("agent:2"));
    let uid = world.pods[&old]["metadata"]["uid"].as_str().unwrap().to_owned();
    assert_eq!(names(&world), [NAMES.of("n1", Some(&uid))]);
}

#[test]
fn nodes_whose_pods_are_refused_keep_no_others_waiting() {
    let nodes: Vec<String> = (0..40).map(|number| format!("n{number:02}")).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut world = on(&nodes, &json!({"burstReplicas": 7}));
    let refused = nodes.iter().take(33).map(|node| NAMES.of(node, None));
    world.memory.refused_names = refused.collect();
    let others: Vec<String> = nodes.iter().skip(33).map(|node| NAMES.of(node, None)).collect();
    assert_eq!(names(&world), others);
}

#[test]
fn pods_whose_updates_are_refused_keep_no_others_waiting() {
    let mut world = on(&["n1", "n2", "n3"], &json!({}));
    let plan = world.plan(Explain::No);
    world.execute(&plan);
    let pods: Vec<String> = world.pods.keys().cloned().collect();
    world.work(&pods);
    let plan = world.plan(Explain::No);
    world.execute(&plan);
    world.work(&pods);
    world.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("agent:2"));
    let deleted = |world: &World| -> Vec<String> {
        let plan = world.plan(Explain::No);
        let steps = plan.writes.iter().flat_map(|object| &object.steps);
        let deletions = steps.filter(|step| step.write.intent() == Intent::DELETE_POD);
        deletions.map(|step| step.write.target().name.clone()).collect()
    };
    let [first] = deleted(&world).try_into().unwrap();
    let uid = uid_of(&world.pods[&first]);
    world.memory.refused.insert(uid, 1);
    let [second] = deleted(&world).try_into().unwrap();
    assert_ne!(first, second);
}
