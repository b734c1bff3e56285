//! New objects are made of their templates, whole.

use kruise_plan_kit::{Explain, Intent, Write};
use serde_json::{Value, json};

use super::world::{World, owner};

/// The objects that a set of one replica creates, by what they are for.
fn created(spec: Value) -> impl Fn(Intent) -> Value {
    let world = World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap());
    let plan = world.plan(Explain::No);
    let steps = plan.writes.into_iter().flat_map(|object| object.steps);
    let all: Vec<(Intent, Value)> = steps
        .filter_map(|step| match step.write {
            Write::Create { intent, body, .. } => Some((intent, body.render())),
            _ => None,
        })
        .collect();
    move |wanted| {
        all.iter()
            .find(|(intent, _)| *intent == wanted)
            .unwrap()
            .1
            .clone()
    }
}

fn spec() -> Value {
    let volumes = json!([{"name": "cache", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]);
    json!({
        "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "service",
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "db"}, "annotations": {"note": "x"}, "finalizers": ["example.com/held"]},
            "spec": {"containers": [{"name": "main", "image": "web:1", "novel": {"a": [1]}}], "volumes": volumes,
                     "hostname": "else", "newer": true, "readinessGates": [{"conditionType": "example.com/ready"}]},
        },
        "volumeClaimTemplates": [{
            "metadata": {"name": "data", "labels": {"app": "else", "kind": "disk"}, "annotations": {"note": "y"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "novel": 1},
        }],
    })
}

#[test]
fn a_new_pod_is_its_template_whole_with_its_identity_and_its_claims() {
    let created = created(spec());
    let revision = created(Intent::CREATE_REVISION)["metadata"]["name"].clone();
    let mut pod = created(Intent::CREATE_POD);
    // Volumes are mounted by name: their order means nothing. Writing is allowed if nothing is said.
    let volumes = pod["spec"]["volumes"].as_array_mut().unwrap();
    volumes.sort_by_key(|volume| volume["name"].to_string());
    for volume in volumes {
        if let Some(Value::Object(claim)) = volume.get_mut("persistentVolumeClaim") {
            claim.retain(|key, value| key != "readOnly" || *value != false);
        }
    }
    let gates = json!([{"conditionType": "example.com/ready"}, {"conditionType": "KruisePodReady"}]);
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-0", "generateName": "web-", "namespace": "shop",
            "labels": {"app": "web", "tier": "db", "controller-revision-hash": revision,
                       "statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0",
                       "lifecycle.apps.kruise.io/state": "Normal"},
            "annotations": {"note": "x", "lifecycle.apps.kruise.io/timestamp": "2026-01-01T00:00:00Z"},
            "finalizers": ["example.com/held"], "ownerReferences": [owner(true)],
        },
        "spec": {
            "containers": [{"name": "main", "image": "web:1", "novel": {"a": [1]}}], "newer": true,
            "hostname": "web-0", "subdomain": "service", "readinessGates": gates,
            "volumes": [{"name": "cache", "emptyDir": {}},
                        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}],
        },
    });
    assert_eq!(pod, expected);
}

#[test]
fn a_new_claim_is_its_template_with_the_labels_of_the_selector() {
    let mut claim = created(spec())(Intent::CREATE_CLAIM);
    // The server sets it whatever is sent.
    claim.as_object_mut().unwrap().remove("status");
    let expected = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-web-0", "namespace": "shop", "labels": {"app": "web", "kind": "disk"},
                     "annotations": {"note": "y"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "novel": 1},
    });
    assert_eq!(claim, expected);
    let mut spec = spec();
    spec["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
    let claim = created(spec)(Intent::CREATE_CLAIM);
    assert_eq!(claim["metadata"]["ownerReferences"], json!([owner(false)]));
}

#[test]
fn the_subdomain_is_the_sets_service_whatever_the_template_says() {
    let mut spec = spec();
    spec["template"]["spec"]["subdomain"] = json!("else");
    assert_eq!(
        created(spec.clone())(Intent::CREATE_POD)["spec"]["subdomain"],
        "service"
    );
    spec["serviceName"] = json!("");
    assert_eq!(created(spec)(Intent::CREATE_POD)["spec"].get("subdomain"), None);
}

#[test]
fn volumes_of_claims_are_in_the_order_of_their_templates() {
    let mut spec = spec();
    let data = spec["volumeClaimTemplates"][0].clone();
    let claims = ["log", "data", "archive", "backup"].map(|name| {
        let mut claim = data.clone();
        claim["metadata"]["name"] = json!(name);
        claim
    });
    spec["volumeClaimTemplates"] = json!(claims);
    let pod = created(spec)(Intent::CREATE_POD);
    let names = |volume: &Value| volume["name"].as_str().unwrap().to_owned();
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let mounted = volumes
        .iter()
        .filter(|volume| volume.get("persistentVolumeClaim").is_some());
    let mounted: Vec<String> = mounted.map(names).collect();
    assert_eq!(mounted, ["log", "data", "archive", "backup"]);
}

#[test]
fn a_new_revision_is_the_sets_and_carries_its_labels() {
    let revision = created(spec())(Intent::CREATE_REVISION);
    let metadata = &revision["metadata"];
    let name = metadata["name"].as_str().unwrap();
    let hash = name.strip_prefix("web-").unwrap();
    let labels = json!({"app": "web", "tier": "db", "controller.kubernetes.io/hash": hash});
    assert_eq!(metadata["labels"], labels);
    assert_eq!(metadata["ownerReferences"], json!([owner(true)]));
    assert_eq!(revision["revision"], 1);
    assert_eq!(revision["data"]["spec"]["template"]["$patch"], "replace");
}
