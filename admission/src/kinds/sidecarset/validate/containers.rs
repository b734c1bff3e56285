//! Rules about what is injected.

use std::collections::BTreeSet;

use go_compat::quantity::Quantity;
use kruise_plan_kit::sidecars::is_native;
use kube_schema::validate::{self, Errors, Kind};
use regex_lite::Regex;
use serde_json::{Map, Value, json};

use crate::json::{items, text};
use crate::pod::sidecars::expression::{Amount, evaluate, has_malformed_number};

/// Where a container may name a host to connect to.
const HOSTS: [&str; 10] = [
    "livenessProbe.httpGet.host",
    "livenessProbe.tcpSocket.host",
    "readinessProbe.httpGet.host",
    "readinessProbe.tcpSocket.host",
    "startupProbe.httpGet.host",
    "startupProbe.tcpSocket.host",
    "lifecycle.postStart.httpGet.host",
    "lifecycle.postStart.tcpSocket.host",
    "lifecycle.preStop.httpGet.host",
    "lifecycle.preStop.tcpSocket.host",
];
const POSITIONS: &[&str] = &["BeforeAppContainer", "AfterAppContainer"];
const SHARES: &[&str] = &["enabled", "disabled"];
const MODES: &[&str] = &["sum", "max"];
/// Amounts that containers of a pod may well have.
const SAMPLES: &[(&str, &[&str])] = &[
    ("cpu", &["0", "10m", "1", "64", "1k"]),
    ("memory", &["0", "16Mi", "1Gi", "1G", "4Ti"]),
];

/// Containers, volumes, and annotation patches.
pub(super) fn check(errors: &mut Errors, spec: &Value) {
    for (index, one) in items(spec, "containers").iter().enumerate() {
        let path = format!("spec.containers[{index}]");
        errors.one_of(
            format!("{path}.podInjectPolicy"),
            text(one, "podInjectPolicy"),
            POSITIONS,
        );
        let share = one
            .get("shareVolumePolicy")
            .map(|policy| text(policy, "type"))
            .unwrap_or_default();
        errors.one_of(format!("{path}.shareVolumePolicy.type"), share, SHARES);
        transfers(errors, one, &path);
        resources(errors, one, &path);
    }
    for (index, one) in items(spec, "initContainers").iter().enumerate() {
        let path = format!("spec.initContainers[{index}]");
        let has_policy = one.get("resourcesPolicy").is_some_and(|policy| !policy.is_null());
        if has_policy && !is_native(one) {
            let detail = "only for init containers that keep running (restartPolicy Always)";
            errors.forbidden(format!("{path}.resourcesPolicy"), detail);
        }
        resources(errors, one, &path);
    }
    as_pod(errors, spec);
    patches(errors, spec);
}

/// Reference to the container that variables come from.
fn transfers(errors: &mut Errors, sidecar: &Value, path: &str) {
    for (index, transfer) in items(sidecar, "transferEnv").iter().enumerate() {
        let reference = transfer.pointer("/sourceContainerNameFrom/fieldRef");
        let Some(reference) = reference.filter(|one| one.is_object()) else {
            continue;
        };
        let found = text(reference, "fieldPath");
        let is_known = ["metadata.labels['", "metadata.annotations['"]
            .iter()
            .any(|prefix| {
                found
                    .strip_prefix(prefix)
                    .is_some_and(|key| key.len() > 2 && key.ends_with("']"))
            });
        if !is_known {
            let path = format!("{path}.transferEnv[{index}].sourceContainerNameFrom.fieldRef.fieldPath");
            errors.invalid(
                path,
                found,
                "must be metadata.labels['KEY'] or metadata.annotations['KEY']",
            );
        }
    }
}

fn resources(errors: &mut Errors, sidecar: &Value, path: &str) {
    let Some(policy) = sidecar.get("resourcesPolicy").filter(|policy| policy.is_object()) else {
        return;
    };
    let path = format!("{path}.resourcesPolicy");
    let is_set = |name: &str| {
        let own = sidecar
            .get("resources")
            .and_then(|own| own.get(name)?.as_object());
        own.is_some_and(|own| !own.is_empty())
    };
    if is_set("limits") || is_set("requests") {
        errors.forbidden(&path, "resources are either given or computed");
    }
    errors.one_of(
        format!("{path}.targetContainersMode"),
        text(policy, "targetContainersMode"),
        MODES,
    );
    let pattern = text(policy, "targetContainersNameRegex");
    if pattern.is_empty() {
        errors.required(format!("{path}.targetContainersNameRegex"), "");
    } else if let Err(error) = Regex::new(pattern) {
        errors.invalid(
            format!("{path}.targetContainersNameRegex"),
            pattern,
            &error.to_string(),
        );
    }
    let kinds = ["limits", "requests"];
    let given = |kind: &str| {
        policy
            .pointer(&format!("/resourcesExpr/{kind}"))
            .filter(|one| one.is_object())
    };
    if kinds.iter().all(|kind| given(kind).is_none()) {
        errors.required(
            format!("{path}.resourcesExpr"),
            "limits or requests must be given",
        );
    }
    for kind in kinds {
        for (resource, samples) in SAMPLES {
            let expression = given(kind).map(|one| text(one, resource)).unwrap_or_default();
            if let Some(flaw) = flaw(expression, samples) {
                errors.invalid(
                    format!("{path}.resourcesExpr.{kind}.{resource}"),
                    expression,
                    &flaw,
                );
            }
        }
    }
}

/// Why an expression has a value for no amount a container may have.
fn flaw(expression: &str, samples: &[&str]) -> Option<String> {
    if expression.is_empty() {
        return None;
    }
    if has_malformed_number(expression) {
        return Some("it holds a number that cannot be read".to_owned());
    }
    let mut flaw = None;
    for sample in samples {
        let Ok(amount) = sample.parse::<Quantity>() else {
            continue;
        };
        match evaluate(expression, &Amount::Quantity(amount)) {
            Ok(_) => return None,
            Err(found) => flaw = Some(found.to_string()),
        }
    }
    flaw
}

/// Warns of probes and handlers with a `host`: Pod Security refuses the pods that they are injected into.
pub(in crate::kinds::sidecarset) fn hosts(set: &Value) -> Vec<String> {
    let spec = set.get("spec").unwrap_or(&Value::Null);
    let mut texts = Vec::new();
    for list in ["containers", "initContainers"] {
        for (index, sidecar) in items(spec, list).iter().enumerate() {
            let is_set = |field: &&&str| {
                let host = sidecar.pointer(&format!("/{}", field.replace('.', "/")));
                host.and_then(Value::as_str).is_some_and(|host| !host.is_empty())
            };
            texts.extend(HOSTS.iter().filter(is_set).map(|field| {
                format!(
                    "spec.{list}[{index}].{field}: from Kubernetes 1.34 on, Pod Security \"baseline\" refuses pods with this \
                     sidecar"
                )
            }));
        }
    }
    texts
}

/// The template of a pod with nothing but what a SidecarSet injects.
pub(in crate::kinds::sidecarset) fn pod_of(set: &Value) -> Value {
    template_of(set.get("spec").unwrap_or(&Value::Null))
}

fn template_of(spec: &Value) -> Value {
    let mut pod = Map::new();
    for name in ["containers", "initContainers", "volumes"] {
        pod.insert(name.to_owned(), items(spec, name).into());
    }
    if items(spec, "containers").is_empty() {
        let stand_in = json!([{"name": "test", "image": "busybox", "imagePullPolicy": "IfNotPresent"}]);
        pod.insert("containers".to_owned(), stand_in);
    }
    json!({"spec": pod})
}

/// What a pod of nothing but these would be refused for.
fn as_pod(errors: &mut Errors, spec: &Value) {
    errors.0.extend(
        validate::pod_template(&template_of(spec), &[], "")
            .into_iter()
            .map(|mut error| {
                error.path = error.path.trim_start_matches('.').to_owned();
                error
            }),
    );
}

fn patches(errors: &mut Errors, spec: &Value) {
    let mut seen = BTreeSet::new();
    for (index, patch) in items(spec, "patchPodMetadata").iter().enumerate() {
        let path = format!("spec.patchPodMetadata[{index}]");
        if text(patch, "patchPolicy").is_empty() {
            errors.required(format!("{path}.patchPolicy"), "");
        }
        let annotations = patch.get("annotations").and_then(Value::as_object);
        if annotations.is_none_or(Map::is_empty) {
            errors.required(format!("{path}.annotations"), "no annotation defined");
        }
        let metadata = json!({"name": "a", "annotations": annotations});
        errors.0.extend(validate::metadata(&metadata, &path));
        for key in annotations.into_iter().flat_map(Map::keys) {
            if !seen.insert(key) {
                errors.add(format!("{path}.annotations"), Kind::Duplicate, key.as_str(), "");
            }
        }
    }
}
