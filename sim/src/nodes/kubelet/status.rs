//! What a node's agent reports of a pod, and the patch that brings the stored status there.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::conditions::{Condition, conditions};
use super::container::Container;
use super::pod::{Pod, has_run};
use super::resize::Refusal;
use super::run::Exit;
use super::spec::{ContainerSpec, Role};
use crate::nodes::identity::{container_id, image_id};
use crate::object::{at, get_metadata, metadata_text, seconds};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    pub(super) fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// That of a pod which has ended.
    pub(super) fn stored(pod: &Value) -> Option<Self> {
        match at(pod, "/status/phase")?.as_str()? {
            "Succeeded" => Some(Self::Succeeded),
            "Failed" => Some(Self::Failed),
            _ => None,
        }
    }

    /// `stopped`: the pod is being deleted, and its containers stopped.
    pub(super) fn of(runtime: &Pod, stopped: bool) -> Self {
        let alive = runtime.containers.iter().any(Container::is_alive);
        let mains = || runtime.containers.iter().filter(|one| one.role == Role::Main);
        let over = runtime.is_over() || (stopped && mains().all(has_run));
        if over && !alive {
            let counts = |one: &&Container| !matches!(one.role, Role::Sidecar | Role::Ephemeral);
            let mut counted = runtime.containers.iter().filter(counts);
            return if counted.all(Container::has_succeeded) {
                Self::Succeeded
            } else {
                Self::Failed
            };
        }
        if !runtime.is_initialized() || !mains().all(has_run) {
            return Self::Pending;
        }
        Self::Running
    }
}

/// Which containers a list of the status has.
type Picks = fn(Role) -> bool;

/// The patch of `pods/status` that reports the pod's state; `None` if the stored status is the same already.
pub(super) fn patch(
    runtime: &Pod,
    specs: &[ContainerSpec<'_>],
    pod: &Value,
    phase: Phase,
    now: Timestamp,
) -> Option<Value> {
    let stored = pod.get("status").unwrap_or(&Value::Null);
    let mut status = Map::new();
    let mut say = |name: &str, value: Value| {
        if stored.get(name) != Some(&value) {
            status.insert(name.to_owned(), value);
        }
    };
    let generation = get_metadata(pod, "generation").as_i64();
    let reports = specs
        .first()
        .is_some_and(|spec| spec.version.reports_generations());
    let generation = generation.filter(|_| reports);
    if let Some(generation) = generation {
        say("observedGeneration", generation.into());
    }
    say("phase", phase.name().into());
    say("startTime", seconds(runtime.start).into());
    say("hostIP", runtime.host.as_str().into());
    say("hostIPs", json!([{"ip": runtime.host}]));
    if runtime.has_begun() {
        say("podIP", runtime.address.as_str().into());
        say("podIPs", json!([{"ip": runtime.address}]));
    }
    let all: Vec<_> = runtime.containers.iter().zip(&runtime.has).zip(specs).collect();
    let is_init = |role: Role| matches!(role, Role::Init | Role::Sidecar);
    let has_init = all.iter().any(|((one, _), _)| is_init(one.role));
    let lists: [(&str, Picks); 3] = [
        ("initContainerStatuses", is_init),
        ("containerStatuses", |role| role == Role::Main),
        ("ephemeralContainerStatuses", |role| role == Role::Ephemeral),
    ];
    for (name, is_in) in lists {
        let list = all.iter().filter(|((one, _), _)| is_in(one.role));
        let statuses: Vec<Value> = list
            .map(|(one, spec)| {
                let waits_for_init = has_init && spec.role != Role::Ephemeral;
                container(*one, spec, runtime, pod, waits_for_init, now)
            })
            .collect();
        if !statuses.is_empty() {
            say(name, statuses.into());
        }
    }
    let conditions = conditions(runtime, specs, pod, phase, now);
    let mut changed: Vec<Value> = conditions
        .iter()
        .filter_map(|one| change(one, stored, generation, now))
        .collect();
    changed.extend(pending(runtime, stored, generation, now));
    if !changed.is_empty() {
        say("conditions", changed.into());
    }
    (!status.is_empty()).then(|| {
        let mut patch = Map::new();
        patch.insert("metadata".into(), json!({"uid": runtime.uid}));
        patch.insert("status".into(), status.into());
        patch.into()
    })
}

/// What a patch must say for a condition to be as it should.
fn change(condition: &Condition, stored: &Value, generation: Option<i64>, now: Timestamp) -> Option<Value> {
    let list = stored.get("conditions").and_then(Value::as_array);
    let found = list
        .into_iter()
        .flatten()
        .find(|one| one.get("type").and_then(Value::as_str) == Some(condition.kind));
    let text = |name: &str| found.and_then(|one| one.get(name)?.as_str()).unwrap_or_default();
    let status = if condition.holds { "True" } else { "False" };
    let observed = found.and_then(|one| one.get("observedGeneration")?.as_i64());
    if (text("status"), text("reason"), text("message")) == (status, condition.reason, &condition.message)
        && observed == generation
    {
        return None;
    }
    let since = if text("status") == status {
        text("lastTransitionTime").to_owned()
    } else {
        seconds(now)
    };
    let mut change = json!({"type": condition.kind, "status": status, "lastProbeTime": null,
        "lastTransitionTime": since});
    if let Value::Object(members) = &mut change {
        if let Some(generation) = generation {
            members.insert("observedGeneration".into(), generation.into());
        }
        for (name, value) in [("reason", condition.reason), ("message", &condition.message)] {
            if !value.is_empty() {
                members.insert(name.into(), value.into());
            } else if !text(name).is_empty() {
                members.insert(name.into(), Value::Null);
            }
        }
    }
    Some(change)
}

/// The condition with the reason why containers do not get what they request; there is none if they have it.
fn pending(runtime: &Pod, stored: &Value, generation: Option<i64>, now: Timestamp) -> Option<Value> {
    let kind = "PodResizePending";
    if let Some(Refusal { reason, message }) = runtime.refusal.clone() {
        let condition = Condition {
            kind,
            holds: true,
            reason,
            message,
        };
        return change(&condition, stored, generation, now);
    }
    let mut list = stored
        .get("conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    list.any(|one| one.get("type").and_then(Value::as_str) == Some(kind))
        .then(|| json!({"$patch": "delete", "type": kind}))
}

fn container(
    (one, has): (&Container, &Value),
    spec: &ContainerSpec<'_>,
    runtime: &Pod,
    pod: &Value,
    has_init: bool,
    now: Timestamp,
) -> Value {
    let ended = |exit: &Exit| {
        json!({"terminated": {
            "exitCode": exit.code, "reason": exit.reason, "startedAt": seconds(exit.started),
            "finishedAt": seconds(exit.finished), "containerID": container_id(&runtime.uid, spec.name, exit.run),
        }})
    };
    let mut last = one.last.as_ref().map_or_else(|| json!({}), ended);
    let waits = |reason: &str| json!({"waiting": {"reason": reason}});
    let held = one.held(spec, now);
    let state = match (&one.run, &one.exit, one.restart) {
        (_, exit, _) if let Some((reason, message)) = held => {
            last = exit.as_ref().map_or(last, ended);
            json!({"waiting": {"reason": reason, "message": message}})
        }
        (Some(run), ..) => json!({"running": {"startedAt": seconds(run.since)}}),
        (None, Some(exit), Some((_, pause))) if !pause.is_zero() => {
            last = ended(exit);
            let back_off = jiff::SignedDuration::try_from(pause)
                .map(go_compat::duration::format)
                .unwrap_or_default();
            json!({"waiting": {"reason": "CrashLoopBackOff", "message": format!(
                "back-off {back_off} restarting failed container={} pod={}_{}({})",
                spec.name, metadata_text(pod, "name"), metadata_text(pod, "namespace"), runtime.uid)}})
        }
        (None, Some(exit), _) => ended(exit),
        (None, None, _) if has_init => waits("PodInitializing"),
        (None, None, _) => waits("ContainerCreating"),
    };
    let shown = one.run.as_ref().map(|run| (&run.image, one.restarts));
    let shown = shown.or_else(|| one.exit.as_ref().map(|exit| (&exit.image, exit.run)));
    let mut status = json!({
        "name": spec.name, "state": state, "lastState": last, "ready": one.is_ready(now),
        "restartCount": one.restarts, "started": one.is_started(now),
        "image": shown.map_or(spec.image, |(image, _)| image),
        "imageID": shown.map(|(image, _)| image_id(image)).unwrap_or_default(),
    });
    if let Value::Object(members) = &mut status {
        members.insert("resources".into(), json!({}));
        if has.is_object() {
            members.insert("resources".into(), has.clone());
        }
        if let Some(requests) = has.get("requests") {
            members.insert("allocatedResources".into(), requests.clone());
        }
    }
    if let (Some((_, run)), Value::Object(members)) = (shown, &mut status) {
        members.insert(
            "containerID".into(),
            container_id(&runtime.uid, spec.name, run).into(),
        );
    }
    status
}
