//! What the planner does not know passes through it unharmed.

use jiff::Timestamp;
use kruise_plan_kit::{Intent, Patch, Write};
use serde_json::{Value, json};

use crate::world::World;

/// A template with members that no build knows, at every level, between ones that it does.
fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"note": "<a> & \u{2028}"}, "finalizers": ["example.com/f"]},
        "spec": {
            "aField": {"from": [1, 2.5, null, {"the": "future"}]},
            "containers": [
                {"name": "main", "image": "web:1", "zField": true, "env": [{"name": "A", "value": "", "newKind": {"x": 1}}],
                 "resources": {"limits": {"cpu": "1000m", "example.com/gpu": "1"}, "claims": [{"name": "c", "request": "r"}]},
                 "ports": [{"containerPort": 80, "protocol": "QUIC", "futures": []}]},
                {"name": "log", "image": "log:1", "volumeMounts": [{"name": "v", "mountPath": "/v", "novel": "yes"}]},
            ],
            "initContainers": [{"name": "init", "image": "init:1", "restartPolicy": "Always", "unheardOf": {}}],
            "readinessGates": [{"conditionType": "example.com/own", "note": "kept"}],
            "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "Maybe"}],
            "volumes": [{"name": "v", "holographic": {"depth": 3}}],
        },
    })
}

fn world() -> World {
    let spec = json!({
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template(),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2, "partition": 0}},
    });
    World::new(spec, "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap())
}

fn execute(world: &mut World) -> Vec<Write> {
    let plan = world.plan();
    let mut objects: Vec<_> = plan.writes.iter().collect();
    objects.sort_by_key(|object| object.phase);
    let mut writes = Vec::new();
    for object in objects {
        let mut previous = None;
        for step in &object.steps {
            world.apply(&step.write, &mut previous).unwrap();
            writes.push(step.write.clone());
        }
    }
    world.report(&plan);
    writes
}

/// The specification without the gates that the planner appends.
fn without_our_gates(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let gates = spec["readinessGates"].as_array_mut().unwrap();
    gates.retain(|gate| {
        gate["conditionType"] != "InPlaceUpdateReady" && gate["conditionType"] != "KruisePodReady"
    });
    spec
}

#[test]
fn a_created_pod_has_the_templates_specification_byte_for_byte() {
    let mut world = world();
    execute(&mut world);
    assert_eq!(world.pods.len(), 2);
    for pod in world.pods.values() {
        assert_eq!(
            without_our_gates(&pod["spec"]).to_string(),
            template()["spec"].to_string()
        );
        assert_eq!(pod["metadata"]["finalizers"], json!(["example.com/f"]));
        assert_eq!(
            pod["metadata"]["annotations"]["note"],
            template()["metadata"]["annotations"]["note"]
        );
    }
}

#[test]
fn a_pod_recreated_on_the_current_revision_has_that_revisions_unknown_fields() {
    let mut world = world();
    execute(&mut world);
    execute(&mut world);
    world.edit(|spec| {
        spec["template"]["spec"]["aField"] = json!("another");
        spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(2);
    });
    let lost = world.pods.keys().next().unwrap().clone();
    world.pods.remove(&lost);
    execute(&mut world);
    assert_eq!(world.pods.len(), 2);
    for pod in world.pods.values() {
        assert_eq!(pod["spec"]["aField"], template()["spec"]["aField"]);
        assert_eq!(pod["spec"]["volumes"], template()["spec"]["volumes"]);
        assert_eq!(pod["spec"]["containers"][0]["zField"], true);
    }
}

#[test]
fn an_in_place_update_mentions_the_image_and_nothing_else_of_the_specification() {
    let mut world = world();
    execute(&mut world);
    let names: Vec<String> = world.pods.keys().cloned().collect();
    for name in &names {
        world.bind(name, "a1");
        world.kubelet(name);
    }
    let before = world.pods.clone();
    world.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("web:2"));
    let writes = execute(&mut world);
    let updates: Vec<Value> = writes
        .iter()
        .filter(|write| write.intent() == Intent::UPDATE_IN_PLACE)
        .map(|write| match write {
            Write::Patch {
                patch: Patch::Strategic(patch),
                ..
            } => patch.render(),
            other => panic!("{other} is no strategic patch"),
        })
        .collect();
    assert_eq!(updates.len(), 2);
    for patch in updates {
        assert_eq!(
            patch["spec"],
            json!({"containers": [{"name": "main", "image": "web:2"}]})
        );
    }
    for (name, pod) in &world.pods {
        let mut expected = before[name]["spec"].clone();
        expected["containers"][0]["image"] = json!("web:2");
        assert_eq!(pod["spec"].to_string(), expected.to_string());
    }
}

#[test]
fn an_unknown_field_that_changes_needs_a_new_pod() {
    let mut world = world();
    execute(&mut world);
    world.edit(|spec| spec["template"]["spec"]["containers"][1]["volumeMounts"][0]["novel"] = json!("no"));
    let writes = execute(&mut world);
    let deleted = writes
        .iter()
        .filter(|write| write.intent() == Intent::DELETE_POD)
        .count();
    assert_eq!(deleted, 2, "{writes:?}");
}

#[test]
fn a_revision_takes_the_sets_annotations_but_not_what_kubectl_applied() {
    let mut world = world();
    world.set["metadata"]["annotations"] =
        json!({"team": "shop", "kubectl.kubernetes.io/last-applied-configuration": "{\"long\": true}"});
    execute(&mut world);
    let revision = world.revisions.values().next().unwrap();
    let annotations = revision["metadata"]["annotations"].as_object().unwrap();
    let keys: Vec<&String> = annotations.keys().collect();
    assert_eq!(
        keys,
        [
            "kruise.io/cloneset-volumeclaimtemplate-hash",
            "kruise.io/template-hash",
            "team"
        ]
    );
}
