//! What a sidecar takes over from the pod's own containers: mounts, devices and environment variables.

use kruise_plan_kit::sidecars::{is_own, names::ENV_INJECTED};
use serde_json::{Map, Value, json};

use crate::json::{items, text};
use crate::pod::draft::entry;

/// The container to inject for a sidecar; `resources` replace its own if they were computed.
pub(super) fn prepared(sidecar: &Value, pod: &Value, resources: Option<Value>) -> Value {
    let mut container = container_of(sidecar);
    if let Some(resources) = resources {
        container.insert("resources".to_owned(), resources);
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let own: Vec<&Value> = items(spec, "containers")
        .iter()
        .filter(|one| !is_injected(one))
        .collect();
    let shares = |policy: &str| {
        sidecar
            .get(policy)
            .is_some_and(|policy| text(policy, "type") == "enabled")
    };
    let mut variables: Vec<Value> = items(sidecar, "env").to_vec();
    variables.push(json!({"name": ENV_INJECTED, "value": "true"}));
    let mut more = transferred(sidecar, pod, &own);
    let mut mounts = items(sidecar, "volumeMounts").to_vec();
    let mut devices = items(sidecar, "volumeDevices").to_vec();
    if shares("shareVolumePolicy") {
        let mut used: Vec<String> = paths(&mounts, "mountPath")
            .chain(paths(&devices, "devicePath"))
            .collect();
        for app in &own {
            for mount in items(app, "volumeMounts") {
                more.extend(expanded(text(mount, "subPathExpr"), app));
                take(&mut mounts, &mut used, mount, "mountPath");
            }
        }
    }
    if shares("shareVolumeDevicePolicy") {
        let mut used: Vec<String> = paths(&devices, "devicePath")
            .chain(paths(&mounts, "mountPath"))
            .collect();
        for device in own.iter().flat_map(|app| items(app, "volumeDevices")) {
            take(&mut devices, &mut used, device, "devicePath");
        }
    }
    for variable in more {
        if !variables
            .iter()
            .any(|one| text(one, "name") == text(&variable, "name"))
        {
            variables.push(variable);
        }
    }
    set(&mut container, "env", variables);
    set(&mut container, "volumeMounts", mounts);
    set(&mut container, "volumeDevices", devices);
    container.into()
}

/// The sidecar as a container: without the members that only a sidecar has.
fn container_of(sidecar: &Value) -> Map<String, Value> {
    let members = sidecar.as_object().into_iter().flatten();
    let kept = members.filter(|(name, _)| !is_own(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Was this container put into the pod by a SidecarSet?
pub(crate) fn is_injected(container: &Value) -> bool {
    let mut env = items(container, "env").iter();
    env.any(|one| text(one, "name") == ENV_INJECTED && text(one, "value") == "true")
}

fn set(container: &mut Map<String, Value>, name: &str, list: Vec<Value>) {
    if !list.is_empty() {
        container.insert(name.to_owned(), list.into());
    }
}

fn paths(list: &[Value], field: &'static str) -> impl Iterator<Item = String> {
    list.iter().map(move |one| text(one, field).to_owned())
}

fn take(list: &mut Vec<Value>, used: &mut Vec<String>, item: &Value, field: &str) {
    let path = text(item, field);
    if !used.iter().any(|one| one == path) {
        used.push(path.to_owned());
        list.push(item.clone());
    }
}

/// The variables of `app` that a path names as `$(NAME)`.
fn expanded(expression: &str, app: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some((_, after)) = rest.split_once("$(") {
        let Some((name, after)) = after.split_once(')') else {
            break;
        };
        found.extend(variable(app, name).cloned());
        rest = after;
    }
    found
}

/// A variable of a container: of several with one name the last, which is the one that the container sees.
fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    let mut variables = items(container, "env").iter();
    variables.rfind(|one| text(one, "name") == name)
}

/// The variables that `transferEnv` names, where the pod has them.
fn transferred(sidecar: &Value, pod: &Value, own: &[&Value]) -> Vec<Value> {
    let mut found = Vec::new();
    for transfer in items(sidecar, "transferEnv") {
        let Some(source) = source(transfer, pod) else {
            continue;
        };
        let Some(container) = own.iter().find(|one| text(one, "name") == source) else {
            continue;
        };
        let listed = items(transfer, "envNames").iter().filter_map(Value::as_str);
        let mut names: Vec<&str> = listed.chain([text(transfer, "envName")]).collect();
        names.sort_unstable();
        names.dedup();
        found.extend(
            names
                .into_iter()
                .filter_map(|name| variable(container, name).cloned()),
        );
    }
    found
}

/// Name of the container to copy from: what a label or annotation of the pod says, or as written. `None` where the
/// reference cannot be followed.
fn source<'a>(transfer: &'a Value, pod: &'a Value) -> Option<&'a str> {
    let reference = transfer.pointer("/sourceContainerNameFrom/fieldRef");
    let Some(reference) = reference.filter(|reference| !reference.is_null()) else {
        return Some(text(transfer, "sourceContainerName"));
    };
    let path = text(reference, "fieldPath").strip_prefix("metadata.")?;
    let (map, key) = path.split_once("['")?;
    matches!(map, "labels" | "annotations").then_some(())?;
    entry(pod, map, key.strip_suffix("']")?)
}
