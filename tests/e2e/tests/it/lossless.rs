//! Every field of a template is in its pods, as in a plain pod of the same template.
//!
//! The templates in `fixtures/templates` use every field of a pod that the server's own schema lists; a field that a
//! newer server adds fails [`every_field_of_a_pod_is_in_a_template_or_has_a_reason`] until a template has it.

use std::collections::BTreeSet;

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::openapi::Schema;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, scenario, text, web};

const POD_SPEC: &str = "io.k8s.api.core.v1.PodSpec";
const TEMPLATES: [&str; 3] = ["linux", "windows", "host"];
const VERSIONS: [&str; 2] = [
    "clonesets.v1alpha1.apps.kruise.io",
    "clonesets.v1beta1.apps.kruise.io",
];

/// Fields no template can show, by type (`Type.`) or one by one, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("EphemeralContainer.", "added to running pods only"),
    ("PodSpec.ephemeralContainers", "added to running pods only"),
    (
        "PodSpec.activeDeadlineSeconds",
        "refused for pods that run for ever",
    ),
    (
        "ObjectMeta.",
        "of a claim template: only labels and annotations are allowed",
    ),
    ("ManagedFieldsEntry.", "of a claim template: not allowed"),
    ("OwnerReference.", "of a claim template: not allowed"),
    (
        "TypedObjectReference.namespace",
        "gate CrossNamespaceVolumeDataSource is off",
    ),
    ("PodSpec.hostnameOverride", "gate HostnameOverride is off"),
    (
        "Container.restartPolicyRules",
        "gate ContainerRestartRules is off",
    ),
    ("ContainerRestartRule.", "gate ContainerRestartRules is off"),
    (
        "ContainerRestartRuleOnExitCodes.",
        "gate ContainerRestartRules is off",
    ),
    ("EnvVarSource.fileKeyRef", "gate EnvFiles is off"),
    ("FileKeySelector.", "gate EnvFiles is off"),
    ("Lifecycle.stopSignal", "gate ContainerStopSignals is off"),
    ("Volume.image", "gate ImageVolume is off"),
    ("ImageVolumeSource.", "gate ImageVolume is off"),
    (
        "VolumeProjection.clusterTrustBundle",
        "gate ClusterTrustBundleProjection is off",
    ),
    (
        "ClusterTrustBundleProjection.",
        "gate ClusterTrustBundleProjection is off",
    ),
    (
        "VolumeProjection.podCertificate",
        "gate PodCertificateRequest is off",
    ),
    ("PodCertificateProjection.", "gate PodCertificateRequest is off"),
    (
        "ConfigMapVolumeSource.defaultUser",
        "gate AtomicWriteVolumeUserFields is off",
    ),
    (
        "DownwardAPIVolumeSource.defaultUser",
        "gate AtomicWriteVolumeUserFields is off",
    ),
    (
        "ProjectedVolumeSource.defaultUser",
        "gate AtomicWriteVolumeUserFields is off",
    ),
    (
        "SecretVolumeSource.defaultUser",
        "gate AtomicWriteVolumeUserFields is off",
    ),
    (
        "DownwardAPIVolumeFile.user",
        "gate AtomicWriteVolumeUserFields is off",
    ),
    ("KeyToPath.user", "gate AtomicWriteVolumeUserFields is off"),
    (
        "ServiceAccountTokenProjection.user",
        "gate AtomicWriteVolumeUserFields is off",
    ),
    ("EmptyDirVolumeSource.mode", "gate EmptyDirVolumeMode is off"),
    ("PodSpec.evictionResponders", "gate EvictionRequestAPI is off"),
    ("EvictionResponder.", "gate EvictionRequestAPI is off"),
    ("PodSpec.schedulingGroup", "gate GenericWorkload is off"),
    ("PodSchedulingGroup.", "gate GenericWorkload is off"),
    ("HTTPGetAction.protocol", "gate H2CContainerProbe is off"),
    ("GRPCAction.mode", "gate GRPCContainerProbeTLS is off"),
    (
        "VolumeMount.bindMountOptions",
        "gate VolumeBindMountOptions is off",
    ),
];

/// A field of the server that the templates were written for. Older servers lack it, and have gates off that are on
/// there.
const NEWEST: &str = "PodCertificateProjection.";

/// Fields of older servers that later ones renamed.
const RENAMED: &[&str] = &["ClaimSource.", "PodResourceClaim.source"];

/// Metadata that an update in place may change.
const OURS: &[&str] = &[
    "controller-revision-hash",
    "pod-template-hash",
    "lifecycle.apps.kruise.io/state",
    "lifecycle.apps.kruise.io/timestamp",
    "apps.kruise.io/inplace-update-state",
];

/// The schema of this server.
fn schema(kubectl: &Kubectl) -> Schema {
    let document = kubectl.run(&["get", "--raw", "/openapi/v3/api/v1"]).unwrap();
    Schema::parse(&document).unwrap()
}

/// The template of a fixture, as JSON, without fields that this server does not have.
fn template(kubectl: &Kubectl, name: &str) -> Value {
    let path = format!("{}/fixtures/templates/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    // Overhead comes from the class, so the class has to exist.
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kruise-e2e"},
        "handler": "none", "overhead": {"podFixed": {"cpu": "10m", "memory": "16Mi"}},
    });
    // Each test of this file may be the first.
    if let Err(error) = kubectl.create(&class) {
        assert!(error.to_string().contains("AlreadyExists"), "{error:#}");
    }
    let text = kubectl
        .run(&["create", "--dry-run=client", "-o", "json", "-f", &path])
        .unwrap();
    let mut template = serde_json::from_str::<Value>(&text).unwrap()["template"].take();
    schema(kubectl).remove_unknown(POD_SPEC, &mut template["spec"]);
    template
}

/// The same template as a pod that nobody controls.
fn plain(template: &Value) -> Value {
    let mut pod = template.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("plain");
    pod["metadata"]["labels"]["app"] = json!("plain");
    pod
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn every_field_of_a_pod_is_in_a_template_or_has_a_reason() {
    let scenario = scenario("fields");
    let schema = schema(&scenario.kubectl);
    let fields = schema.fields(POD_SPEC);
    assert!(fields.len() > 400, "the schema is not that of a pod: {fields:?}");
    let is_older = !fields.iter().any(|field| field.starts_with(NEWEST));
    let mut used = BTreeSet::new();
    for name in TEMPLATES {
        let template = template(&scenario.kubectl, name);
        if is_older {
            used.extend(schema.used(POD_SPEC, &template["spec"]));
        }
        let pod = plain(&template).to_string();
        let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let stored = scenario.kubectl.run_with_input(&dry_run, &pod).unwrap();
        let stored: Value = serde_json::from_str(&stored).unwrap();
        used.extend(schema.used(POD_SPEC, &stored["spec"]));
    }
    let unused: Vec<&String> = fields.difference(&used).collect();
    let excused = |exception: &str, field: &str| {
        field == exception || (exception.ends_with('.') && field.starts_with(exception))
    };
    let renamed = if is_older { RENAMED } else { &[] };
    let exceptions = EXCEPTIONS.iter().map(|(exception, _)| exception).chain(renamed);
    let missing: Vec<_> = unused
        .iter()
        .filter(|field| !exceptions.clone().any(|exception| excused(exception, field)))
        .collect();
    assert!(missing.is_empty(), "in no template: {missing:?}");
    for (exception, reason) in EXCEPTIONS {
        // An older server does not have the newest fields.
        let is_known = fields.iter().any(|field| excused(exception, field));
        let needed = unused.iter().any(|field| excused(exception, field));
        assert!(
            needed || !is_known,
            "a template has {exception} after all ({reason})"
        );
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn all_that_a_linux_pod_can_say_survives() {
    survives("linux");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn all_that_a_windows_pod_can_say_survives() {
    survives("windows");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn all_that_a_pod_on_its_host_can_say_survives() {
    survives("host");
}

fn survives(name: &str) {
    let scenario = scenario(&format!("lossless-{name}"));
    let template = template(&scenario.kubectl, name);
    let mut expected = scenario.kubectl.create(&plain(&template)).unwrap()["spec"].take();
    let mut set = web(2);
    set["spec"]["template"] = template.clone();
    // Not all of these pods ever become ready.
    set["spec"]["updateStrategy"]["maxUnavailable"] = json!("100%");
    let set = scenario.kubectl.create(&set).unwrap();
    keeps_the_template(&scenario, &template, &set);
    scenario.until_status(&json!({"replicas": 2}));
    have_spec(&scenario, &expected);
    let created = scenario.pods();
    for pod in &created {
        says(&pod["metadata"], &template["metadata"], "metadata");
    }

    json_patch(
        &scenario,
        "/spec/template/spec/containers/0/image",
        &json!("nginx:2"),
    );
    scenario.until_status(&json!({"updatedReplicas": 2, "replicas": 2}));
    expected["containers"][0]["image"] = json!("nginx:2");
    have_spec(&scenario, &expected);
    for (before, after) in created.iter().zip(scenario.pods()) {
        assert_eq!(metadata(before), metadata(&after));
    }

    let old = scenario.uids();
    json_patch(
        &scenario,
        "/spec/template/spec/containers/0/env/0/value",
        &json!("c"),
    );
    scenario.until_status(&json!({"updatedReplicas": 2, "replicas": 2}));
    expected["containers"][0]["env"][0]["value"] = json!("c");
    have_spec(&scenario, &expected);
    assert!(scenario.uids().iter().all(|uid| !old.contains(uid)));

    comes_back_from_its_revision(&scenario, &expected);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn what_no_schema_knows_yet_stays_in_the_template_and_in_its_revision() {
    let scenario = scenario("lossless-future");
    let mut set = web(2);
    let spec = &mut set["spec"]["template"]["spec"];
    spec["futureField"] = json!({"a": [1, {"b": null}], "quantity": "0.5Gi"});
    spec["hostnameOverride"] = json!("web.example.com");
    spec["containers"][0]["futureRules"] = json!([{"action": "Later", "codes": {"values": [42]}}]);
    let template = set["spec"]["template"].clone();
    let set = scenario.kubectl.create(&set).unwrap();
    keeps_the_template(&scenario, &template, &set);
    scenario.until_status(&json!({"readyReplicas": 2}));
    let uids = scenario.uids();
    json_patch(
        &scenario,
        "/spec/template/spec/containers/0/image",
        &json!("nginx:2"),
    );
    scenario.until_status(&json!({"updatedReadyReplicas": 2}));
    assert_eq!(scenario.uids(), uids, "in place");
    for revision in scenario.kubectl.list("controllerrevisions", "").unwrap() {
        let stored = &revision["data"]["spec"]["template"]["spec"];
        same(
            &stored["futureField"],
            &template["spec"]["futureField"],
            "futureField",
        );
        assert_eq!(stored["hostnameOverride"], "web.example.com");
    }
}

/// A pod deleted by hand while the partition holds back everything else is made from the stored revision.
fn comes_back_from_its_revision(scenario: &Scenario, expected: &Value) {
    let old = scenario.uids();
    let other = json!({"containers": [{"name": "main", "image": "nginx:3"}]});
    let operations = json!([
        {"op": "add", "path": "/spec/updateStrategy/partition", "value": 2},
        {"op": "replace", "path": "/spec/template/spec", "value": other},
    ]);
    scenario
        .kubectl
        .run(&[
            "patch",
            VERSIONS[0],
            "web",
            "--type=json",
            "-p",
            &operations.to_string(),
        ])
        .unwrap();
    scenario.until_status(&json!({"updatedReplicas": 0, "expectedUpdatedReplicas": null, "replicas": 2}));
    scenario
        .kubectl
        .run(&["delete", "pods", "-l", "app=web", "--wait=false"])
        .unwrap();
    wait::until_true("both pods are new", LIMIT, || {
        let uids = scenario.uids();
        Ok(uids.len() == 2 && uids.iter().all(|uid| !old.contains(uid)))
    })
    .unwrap();
    have_spec(scenario, expected);
}

/// The stored set has the template, in both versions, and writing back what was read changes nothing.
fn keeps_the_template(scenario: &Scenario, template: &Value, created: &Value) {
    let read = VERSIONS.map(|version| scenario.kubectl.get(version, "web").unwrap());
    same(
        &read[0]["spec"]["template"],
        &read[1]["spec"]["template"],
        "spec.template",
    );
    says(&read[0]["spec"]["template"], template, "spec.template");
    for set in read {
        let mut set = set;
        set["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        // kubectl takes the version it finds, and the status may change in between: a conflict is tried again.
        wait::until_true("the set is written back", LIMIT, || {
            let written = scenario
                .kubectl
                .run_with_input(&["replace", "-f", "-"], &set.to_string());
            match written {
                Err(error) if error.to_string().contains("(Conflict)") => Ok(false),
                other => other.map(|_| true),
            }
        })
        .unwrap();
        let now = scenario.kubectl.get(VERSIONS[0], "web").unwrap();
        same(&now["spec"], &created["spec"], "spec");
        assert_eq!(now["metadata"]["generation"], json!(1), "{set}");
    }
}

/// `stored` has all that `given` has; defaults may have joined.
fn says(stored: &Value, given: &Value, path: &str) {
    match (stored, given) {
        (Value::Object(stored), Value::Object(given)) => {
            for (key, given) in given {
                let stored = stored.get(key).unwrap_or(&Value::Null);
                says(stored, given, &format!("{path}.{key}"));
            }
        }
        (Value::Array(stored), Value::Array(given)) => {
            assert_eq!(stored.len(), given.len(), "{path}");
            for (index, (stored, given)) in stored.iter().zip(given).enumerate() {
                says(stored, given, &format!("{path}[{index}]"));
            }
        }
        _ => assert_eq!(stored, given, "{path}"),
    }
}

/// Both are equal; a difference is reported by its path.
fn same(one: &Value, other: &Value, path: &str) {
    says(one, other, path);
    says(other, one, path);
}

/// Every pod is specified as `expected`, but for the two readiness gates that we add.
fn have_spec(scenario: &Scenario, expected: &Value) {
    let pods = scenario.pods();
    assert_eq!(pods.len(), 2);
    for mut pod in pods {
        let spec = pod["spec"].as_object_mut().unwrap();
        let gates = spec
            .get_mut("readinessGates")
            .and_then(Value::as_array_mut)
            .unwrap();
        let before = gates.len();
        let ours = ["InPlaceUpdateReady", "KruisePodReady"];
        gates.retain(|gate| !ours.contains(&gate["conditionType"].as_str().unwrap()));
        assert_eq!(before - gates.len(), 2);
        if gates.is_empty() {
            spec.remove("readinessGates");
        }
        same(&pod["spec"], expected, "spec");
    }
}

/// Labels, annotations and finalizers, without those that tell how far an update is.
fn metadata(pod: &Value) -> Value {
    let mut metadata = pod["metadata"].clone();
    for kind in ["labels", "annotations"] {
        if let Some(map) = metadata[kind].as_object_mut() {
            map.retain(|key, _| !OURS.contains(&key.as_str()));
        }
    }
    let keep = |key: &str| metadata[key].clone();
    json!([
        text(pod, "/metadata/uid"),
        keep("labels"),
        keep("annotations"),
        keep("finalizers")
    ])
}

fn json_patch(scenario: &Scenario, path: &str, value: &Value) {
    let patch = json!([{"op": "replace", "path": path, "value": value}]).to_string();
    let patch = ["patch", VERSIONS[0], "web", "--type=json", "-p", &patch];
    scenario.kubectl.run(&patch).unwrap();
}
