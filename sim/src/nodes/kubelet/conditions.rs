//! The conditions that a node's agent owns, in the words of the kubelet.

use serde_json::Value;

use super::container::Container;
use super::pod::{Pod, has_run};
use super::spec::{ContainerSpec, Role};
use super::status::Phase;
use jiff::Timestamp;

/// A condition of a pod, as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) holds: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Condition {
    fn holds(kind: &'static str) -> Self {
        Self {
            kind,
            holds: true,
            reason: "",
            message: String::new(),
        }
    }

    fn fails(kind: &'static str, reason: &'static str, message: String) -> Self {
        Self {
            kind,
            holds: false,
            reason,
            message,
        }
    }
}

/// All conditions that the agent owns. `pod` is the stored object: gates are read from it.
pub(super) fn conditions(
    runtime: &Pod,
    specs: &[ContainerSpec<'_>],
    pod: &Value,
    phase: Phase,
    now: Timestamp,
) -> Vec<Condition> {
    let containers = containers_ready(runtime, specs, phase, now);
    let sandbox = "PodReadyToStartContainers";
    vec![
        if runtime.has_begun() && !phase.is_final() {
            Condition::holds(sandbox)
        } else {
            Condition::fails(sandbox, "", String::new())
        },
        initialized(runtime, specs, phase, now),
        ready(&containers, pod),
        containers,
    ]
}

fn names<'a>(
    runtime: &'a Pod,
    specs: &'a [ContainerSpec<'_>],
    picks: impl Fn(&Container) -> bool,
) -> Vec<&'a str> {
    let pairs = runtime.containers.iter().zip(specs);
    pairs
        .filter(|(container, _)| picks(container))
        .map(|(_, spec)| spec.name)
        .collect()
}

fn initialized(runtime: &Pod, specs: &[ContainerSpec<'_>], phase: Phase, now: Timestamp) -> Condition {
    let kind = "Initialized";
    if runtime.is_initialized() {
        return match phase {
            Phase::Succeeded => Condition {
                reason: "PodCompleted",
                ..Condition::holds(kind)
            },
            _ => Condition::holds(kind),
        };
    }
    let incomplete = names(runtime, specs, |one| match one.role {
        Role::Init => !one.has_succeeded(),
        Role::Sidecar => !has_run(one) || !one.is_started(now),
        Role::Main | Role::Ephemeral => false,
    });
    let message = format!("containers with incomplete status: [{}]", incomplete.join(" "));
    Condition::fails(kind, "ContainersNotInitialized", message)
}

fn containers_ready(runtime: &Pod, specs: &[ContainerSpec<'_>], phase: Phase, now: Timestamp) -> Condition {
    let kind = "ContainersReady";
    match phase {
        Phase::Succeeded => return Condition::fails(kind, "PodCompleted", String::new()),
        Phase::Failed => return Condition::fails(kind, "PodFailed", String::new()),
        Phase::Pending | Phase::Running => {}
    }
    let unready = names(runtime, specs, |one| {
        !matches!(one.role, Role::Init | Role::Ephemeral) && !one.is_ready(now)
    });
    if unready.is_empty() {
        return Condition::holds(kind);
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    Condition::fails(kind, "ContainersNotReady", message)
}

/// A pod is ready when its containers are and every gate is open.
fn ready(containers: &Condition, pod: &Value) -> Condition {
    let kind = "Ready";
    if !containers.holds {
        return Condition::fails(kind, containers.reason, containers.message.clone());
    }
    let list = |pointer: &str| {
        pod.pointer(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let closed: Vec<String> = list("/spec/readinessGates")
        .filter_map(|gate| gate.get("conditionType").and_then(Value::as_str))
        .filter_map(|gate| {
            let found = list("/status/conditions").find(|one| one.get("type") == Some(&gate.into()));
            let Some(found) = found else {
                return Some(format!(
                    "corresponding condition of pod readiness gate {gate:?} does not exist."
                ));
            };
            let status = found.get("status").and_then(Value::as_str).unwrap_or_default();
            (status != "True")
                .then(|| format!("the status of pod readiness gate {gate:?} is not \"True\", but {status}"))
        })
        .collect();
    if closed.is_empty() {
        return Condition::holds(kind);
    }
    Condition::fails(kind, "ReadinessGatesNotReady", closed.join(", "))
}
