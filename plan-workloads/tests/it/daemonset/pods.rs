//! New pods, member by member.

use kruise_plan_kit::{Explain, Write};
use kruise_plan_test_kit::pinned;
use serde_json::{Value, json};

use super::world::{API_VERSION, SET_UID, World};

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
