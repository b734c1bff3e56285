//! What a node's agent reads of a pod's spec.

use std::time::Duration;

use serde_json::Value;

use super::config::{self, Need};
use super::environment;
use crate::object::at;

/// When and how long a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs to its end before the next begins.
    Init,
    /// An init container that always restarts: begins in its turn and stays.
    Sidecar,
    Main,
}

/// Whether ended containers begin again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl RestartPolicy {
    pub(super) fn of(pod: &Value) -> Self {
        match at(pod, "/spec/restartPolicy").and_then(Value::as_str) {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// The specification of a container.
#[derive(Clone, Debug)]
pub(super) struct ContainerSpec<'a> {
    pub(super) name: &'a str,
    pub(super) image: &'a str,
    pub(super) role: Role,
    /// From the start to the first probes. Probes pass unless a stage fails them.
    pub(super) startup_delay: Duration,
    pub(super) readiness_delay: Duration,
    /// How long a `preStop` hook sleeps.
    pub(super) pre_stop: Duration,
    /// Requests and limits.
    pub(super) resources: &'a Value,
    /// The resources another amount of which takes a restart.
    pub(super) restarts_for: Vec<&'a str>,
    /// What a process that begins now reads of the pod's labels and annotations.
    pub(super) environment: Vec<(String, String)>,
    /// What has to be there before it is created.
    pub(super) needs: Vec<Need<'a>>,
    /// What of it is not there, in words.
    pub(super) missing: Option<String>,
}

/// Init containers (sidecars among them), then the others, in the order of the spec.
pub(super) fn containers(pod: &Value) -> Vec<ContainerSpec<'_>> {
    let list = |name: &str| {
        let items = pod.get("spec").and_then(|spec| spec.get(name)?.as_array());
        items.into_iter().flatten()
    };
    let init = list("initContainers").map(|one| {
        let sidecar = one.get("restartPolicy") == Some(&"Always".into());
        read(one, if sidecar { Role::Sidecar } else { Role::Init }, pod)
    });
    init.chain(list("containers").map(|one| read(one, Role::Main, pod)))
        .collect()
}

fn restarts_for(container: &Value) -> Vec<&str> {
    let policies = container.get("resizePolicy").and_then(Value::as_array);
    let restarts = |policy: &&Value| policy.get("restartPolicy") == Some(&"RestartContainer".into());
    let policies = policies.into_iter().flatten().filter(restarts);
    policies
        .filter_map(|policy| policy.get("resourceName")?.as_str())
        .collect()
}

fn read<'a>(container: &'a Value, role: Role, pod: &'a Value) -> ContainerSpec<'a> {
    let text = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default();
    let seconds = |pointer: &str| {
        let seconds = at(container, pointer).and_then(Value::as_u64);
        Duration::from_secs(seconds.unwrap_or_default())
    };
    ContainerSpec {
        name: text("name"),
        image: text("image"),
        role,
        startup_delay: seconds("/startupProbe/initialDelaySeconds"),
        readiness_delay: seconds("/readinessProbe/initialDelaySeconds"),
        pre_stop: seconds("/lifecycle/preStop/sleep/seconds"),
        resources: container.get("resources").unwrap_or(&Value::Null),
        restarts_for: restarts_for(container),
        environment: environment::read(container, pod),
        needs: config::needs(container),
        missing: None,
    }
}
