//! OpenKruise's daemon on a node, as far as updates in place need it: it reports what containers run with, and restarts
//! those whose environment is not what their pod's labels and annotations say, while the pod is out of service.
//!
//! It looks a second after something changed. Only pods whose environment reads their labels or annotations are looked
//! at; a real daemon reports all pods of its workloads.

use std::time::Duration;

use go_compat::container::environment_hash;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::container::{Container, State};
use super::pod::Pod;
use super::spec::{ContainerSpec, Role};
use crate::nodes::{identity, time::later};
use crate::object::get_metadata;
use crate::world::Client;

/// Where it reports.
const REPORT: &str = "apps.kruise.io/runtime-containers-meta";
/// From a change to the look at it.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// Whether a pod is looked at.
pub(super) fn concerns(specs: &[ContainerSpec<'_>]) -> bool {
    specs.iter().any(|spec| !spec.environment.is_empty())
}

/// Looks at a pod; returns when to look again. `pod` is as it is stored.
pub(super) fn look(
    client: &mut Client<'_>,
    path: &str,
    runtime: &mut Pod,
    specs: &[ContainerSpec<'_>],
    pod: &Value,
) -> Option<Timestamp> {
    if !concerns(specs) {
        return None;
    }
    let report = report(runtime, specs, pod);
    let told = get_metadata(pod, "annotations")
        .get(REPORT)
        .and_then(Value::as_str)
        .unwrap_or_default();
    let reports = report.as_deref().filter(|report| *report != told);
    let restarts = is_out(pod) && runtime.containers.iter().zip(specs).any(is_outdated);
    if reports.is_none() && !restarts {
        runtime.looks = None;
        return None;
    }
    let due = *runtime.looks.get_or_insert_with(|| later(client.now, DEBOUNCE));
    if due > client.now {
        return Some(due);
    }
    runtime.looks = None;
    if restarts {
        let pairs = runtime.containers.iter_mut().zip(specs);
        for (container, _) in pairs.filter(|(one, spec)| is_outdated((&**one, spec))) {
            container.restart("environment changed, will be restarted");
        }
    }
    if let Some(report) = reports {
        let annotations = json!({REPORT: report});
        let patch = json!({"metadata": {"uid": runtime.uid, "annotations": annotations}});
        client.strategic(&format!("{path}/status"), &patch);
    }
    // What is restarted is begun when the pod is looked at the next time.
    restarts.then_some(client.now)
}

/// Is the pod out of service for an update in place?
fn is_out(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| {
        one.get("type") == Some(&"InPlaceUpdateReady".into()) && one.get("status") == Some(&"False".into())
    })
}

fn is_outdated((container, spec): (&Container, &ContainerSpec<'_>)) -> bool {
    container.state == State::Running
        && container
            .run
            .as_ref()
            .is_some_and(|run| run.environment != spec.environment)
}

/// What runs, once all of it does and the status tells of these very runs.
fn report(runtime: &Pod, specs: &[ContainerSpec<'_>], pod: &Value) -> Option<String> {
    let statuses = pod
        .pointer("/status/containerStatuses")
        .and_then(Value::as_array)?;
    let pairs = runtime.containers.iter().zip(specs);
    let mains = pairs.filter(|(_, spec)| spec.role == Role::Main);
    let entries: Option<Vec<Value>> = mains
        .map(|(container, spec)| {
            let run = container.run.as_ref()?;
            let status = statuses
                .iter()
                .find(|one| one.get("name") == Some(&spec.name.into()))?;
            let id = identity::container_id(&runtime.uid, spec.name, container.restarts);
            if status.get("containerID") != Some(&id.as_str().into()) {
                return None;
            }
            let variables = run.environment.iter();
            let variables = variables.map(|(name, value)| (name.as_str(), value.as_str()));
            let hashes = json!({"plainHash": run.plain_hash,
                "extractedEnvFromMetadataHash": environment_hash(variables)});
            Some(
                json!({"name": spec.name, "containerID": id, "restartCount": container.restarts,
                "hashes": hashes}),
            )
        })
        .collect();
    Some(json!({"containers": entries?}).to_string())
}
