//! What clients of OpenKruise wait for: reasons and messages of conditions and events on the way of a set.

use kruise_plan_kit::Plan;
use serde_json::{Value, json};

use crate::world::World;

/// Three pods at rest whose deletion a hook may hold, with a deadline.
fn world(excluded: bool) -> World {
    let spec = json!({
        "replicas": 3, "progressDeadlineSeconds": 600, "selector": {"matchLabels": {"app": "web"}},
        "scaleStrategy": {"excludePreparingDelete": excluded},
        "lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": 1, "maxSurge": 0}},
        "template": {"metadata": {"labels": {"app": "web", "hold": "yes"}},
                     "spec": {"containers": [{"name": "main", "image": "web:1"}]}},
    });
    let mut world = World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(reasons(&mut world).last().unwrap(), "CloneSetAvailable");
    world
}

/// Plans and executes once.
fn step(world: &mut World) -> Plan {
    let plan = world.plan();
    for object in &plan.writes {
        let mut previous = None;
        for step in &object.steps {
            world.apply(&step.write, &mut previous).unwrap();
        }
    }
    world.report(&plan);
    plan
}

fn progressing(world: &World) -> String {
    let conditions = world.set["status"]["conditions"].as_array();
    let mut found = conditions.into_iter().flatten();
    let found = found.find(|condition| condition["type"] == "Progressing");
    found.map_or_else(String::new, |one| one["reason"].as_str().unwrap().to_owned())
}

/// The reasons of `Progressing` until the set comes to rest, without repetitions.
fn reasons(world: &mut World) -> Vec<String> {
    let mut seen = Vec::new();
    let mut quiet = 0;
    while quiet < 3 {
        let before = world.pods.clone();
        step(world);
        let names: Vec<String> = world.pods.keys().cloned().collect();
        for name in names {
            world.bind(&name, "a1");
            world.kubelet(&name);
            world.terminate(&name);
        }
        world.pass(1);
        seen.push(progressing(world));
        quiet = if before == world.pods { quiet + 1 } else { 0 };
        assert!(seen.len() < 100, "no rest: {seen:?}");
    }
    seen.dedup();
    seen
}

#[test]
fn a_deletion_that_a_hook_holds_is_progress_until_the_pod_is_gone() {
    for (excluded, pods, available) in [(true, 4, 3), (false, 3, 2)] {
        let mut world = world(excluded);
        let name = world.pods.keys().next().unwrap().clone();
        world.touch(&name, |pod, _, _| {
            pod["metadata"]["labels"]["apps.kruise.io/specified-delete"] = json!("true");
        });
        assert_eq!(reasons(&mut world), ["CloneSetAvailable", "CloneSetUpdated"]);
        let state = &world.pods[&name]["metadata"]["labels"]["lifecycle.apps.kruise.io/state"];
        assert_eq!(state, "PreparingDelete");
        let status = &world.set["status"];
        assert_eq!(status["replicas"], pods);
        assert_eq!(status["updatedAvailableReplicas"], available);

        world.touch(&name, |pod, _, _| pod["metadata"]["labels"]["hold"] = Value::Null);
        assert_eq!(reasons(&mut world), ["CloneSetUpdated", "CloneSetAvailable"]);
        assert_eq!(world.pods.len(), 3);
    }
}

#[test]
fn a_recreation_that_a_hook_holds_is_not_reported_as_a_deletion() {
    let notes = |hold: bool| {
        let mut world = world(true);
        if !hold {
            world.edit(|spec| spec["lifecycle"] = Value::Null);
        }
        world.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("web:2"));
        let plan = step(&mut world);
        let mut steps = plan.writes.iter().flat_map(|object| &object.steps);
        let step = steps
            .find(|step| step.write.to_string().contains(" pods/"))
            .unwrap()
            .clone();
        let (name, revision) = (
            step.write.target().name.clone(),
            world.set["status"]["updateRevision"].clone(),
        );
        let (done, failed) = (step.done.unwrap(), step.failed.unwrap());
        let plain = |text: &str| {
            text.replace(&name, "POD")
                .replace(revision.as_str().unwrap(), "REV")
        };
        [
            done.reason.name,
            failed.reason.name,
            &plain(&done.message),
            &plain(&failed.prefix),
        ]
        .map(str::to_owned)
    };
    let held = [
        "SuccessfulUpdatePodReCreate",
        "FailedUpdatePodReCreate",
        "successfully patch pod POD specified-delete for update(revision REV)",
        "failed to patch pod specified-delete POD for update(revision REV): ",
    ];
    assert_eq!(notes(true), held);
    assert_eq!(
        notes(false)[2],
        "successfully delete pod POD to recreate it for update(revision REV)"
    );
}
