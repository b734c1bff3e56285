//! New pods, member by member.

use kruise_plan_kit::{Explain, Intent, Write};
use kruise_plan_test_kit::{node, pinned};
use serde_json::{Value, json};

use super::world::{API_VERSION, JOB_UID, NAMES, World, owner};

/// The pods that a job of this template creates for these nodes.
fn created(template: &Value, nodes: &[String], change: impl FnOnce(&mut World)) -> Vec<Value> {
    let spec = json!({"template": template, "parallelism": i32::MAX});
    let mut world = World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap());
    world.nodes.extend(nodes.iter().map(|line| node(line)));
    change(&mut world);
    let plan = world.plan(Explain::No);
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let pods = steps.filter_map(|step| match &step.write {
        Write::Create { body, .. } => Some(body.render()),
        _ => None,
    });
    pods.collect()
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "check"}, "annotations": {"note": "x"}, "finalizers": ["example.com/hold"]},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "check:1", "newField": {"kept": true}}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]}]}}},
        },
    })
}

#[test]
fn a_new_pod_is_its_template_with_the_labels_of_the_job_and_its_node() {
    let [pod] = created(&template(), &["n1".into()], |_| ()).try_into().unwrap();
    let metadata = &pod["metadata"];
    let name = metadata["name"].as_str().unwrap();
    assert!(
        name.starts_with("check-") && name.len() == "check-".len() + 5,
        "{name}"
    );
    assert_eq!(metadata["generateName"], "check-");
    let labels =
        json!({"app": "check", "broadcastjob-name": "check", "broadcastjob-controller-uid": JOB_UID});
    assert_eq!(metadata["labels"], labels);
    assert_eq!(metadata["annotations"], json!({"note": "x"}));
    assert_eq!(metadata["finalizers"], json!(["example.com/hold"]));
    assert_eq!(metadata["ownerReferences"], json!([owner(API_VERSION)]));
    let spec = &pod["spec"];
    assert_eq!(
        spec["affinity"],
        pinned("n1"),
        "the terms of the template are replaced"
    );
    assert_eq!(spec["containers"], template()["spec"]["containers"]);
    assert_eq!(
        spec["readinessGates"],
        json!([{"conditionType": "KruisePodReady"}])
    );
    assert!(spec["tolerations"].is_null() && spec["nodeName"].is_null());
}

#[test]
fn a_pod_may_be_created_bound() {
    let pods = created(&template(), &["n1".into()], |world| {
        world.options.by_scheduler = false;
        world.options.pod_ready_gate = false;
    });
    let spec = &pods[0]["spec"];
    assert_eq!(spec["nodeName"], "n1");
    assert_eq!(spec["affinity"], template()["spec"]["affinity"]);
    assert!(spec["schedulerName"].is_null() && spec["readinessGates"].is_null());
}

#[test]
fn of_the_pods_for_5000_nodes_no_two_share_a_name_or_a_node() {
    let nodes: Vec<String> = (0..5000).map(|number| format!("node-{number}")).collect();
    let pods = created(&template(), &nodes, |_| ());
    let distinct = |pointer: &str| {
        let values = pods.iter().map(|pod| pod.pointer(pointer).unwrap().to_string());
        values.collect::<std::collections::BTreeSet<String>>().len()
    };
    let node = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    assert_eq!(
        [pods.len(), distinct("/metadata/name"), distinct(node)],
        [5000; 3]
    );
}

/// The names of the pods that a plan creates.
fn names(world: &World) -> Vec<String> {
    let plan = world.plan(Explain::No);
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let pods = steps.filter(|step| step.write.intent() == Intent::CREATE_POD);
    pods.map(|step| step.write.target().name.clone()).collect()
}

#[test]
fn no_pod_has_the_name_of_the_one_before_it() {
    let spec = json!({"template": template()});
    let mut world = World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap());
    world.nodes.extend([node("n1")]);
    let mut given: Vec<String> = Vec::new();
    for _ in 0..4 {
        let [name] = names(&world).try_into().unwrap();
        assert!(!given.contains(&name), "{name} after {given:?}");
        given.push(name.clone());
        for _ in 0..2 {
            let plan = world.plan(Explain::No);
            world.execute(&plan);
        }
        // Somebody deletes it.
        world.pods.remove(&name);
    }
}

#[test]
fn nodes_whose_pods_are_refused_keep_no_others_waiting() {
    let spec = json!({"template": template(), "parallelism": 7});
    let mut world = World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap());
    let nodes: Vec<String> = (0..40).map(|number| format!("n{number:02}")).collect();
    world.nodes.extend(nodes.iter().map(|line| node(line)));
    let refused = nodes.iter().take(33).map(|node| NAMES.of(node, None));
    world.memory.refused_names = refused.collect();
    let others: Vec<String> = nodes.iter().skip(33).map(|node| NAMES.of(node, None)).collect();
    assert_eq!(names(&world), others);
}
