//! Cells that are made of more than one member.

use serde_json::Value;

use crate::storage;

/// The phase of a claim or a volume.
pub(super) fn storage_status(object: &Value) -> Value {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    object
        .pointer("/status/phase")
        .cloned()
        .unwrap_or_else(|| "".into())
}

/// The claim that has a volume.
pub(super) fn claim(volume: &Value) -> Value {
    let part = |name: &str| volume.pointer("/spec/claimRef").map(|claim| text(claim, name));
    part("namespace").zip(part("name")).map_or_else(
        || "".into(),
        |(namespace, name)| format!("{namespace}/{name}").into(),
    )
}

/// The name of a storage class, and whether it is the default.
pub(super) fn class_name(class: &Value) -> Value {
    let mark = if storage::is_default(class) {
        " (default)"
    } else {
        ""
    };
    let name = class.pointer("/metadata/name").and_then(Value::as_str);
    format!("{}{mark}", name.unwrap_or_default()).into()
}

pub(super) fn expands(class: &Value) -> Value {
    let allowed = class.get("allowVolumeExpansion") == Some(&true.into());
    allowed.to_string().into()
}

/// Access modes, in short.
pub(super) fn access_modes(object: &Value, pointer: &str) -> Value {
    let modes = list(object, pointer).filter_map(|mode| {
        Some(match mode.as_str()? {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            _ => return None,
        })
    });
    modes.collect::<Vec<_>>().join(",").into()
}

/// A count or percentage as text.
pub(super) fn bound(budget: &Value, pointer: &str) -> Value {
    match budget.pointer(pointer) {
        None => "N/A".into(),
        Some(Value::String(text)) => text.as_str().into(),
        Some(number) => number.to_string().into(),
    }
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn count(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

pub(super) fn ready(pod: &Value) -> Value {
    let all = list(pod, "/spec/containers").count();
    let ready = list(pod, "/status/containerStatuses").filter(|one| one.get("ready") == Some(&true.into()));
    format!("{}/{all}", ready.count()).into()
}

pub(super) fn pod_status(pod: &Value) -> Value {
    let phase = pod
        .pointer("/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut shown = pod
        .pointer("/status/reason")
        .and_then(Value::as_str)
        .unwrap_or(phase)
        .to_owned();
    for status in list(pod, "/status/containerStatuses") {
        for state in ["/state/waiting/reason", "/state/terminated/reason"] {
            if let Some(reason) = status.pointer(state).and_then(Value::as_str) {
                reason.clone_into(&mut shown);
            }
        }
    }
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        shown = "Terminating".into();
    }
    shown.into()
}

pub(super) fn restarts(pod: &Value) -> Value {
    let all: i64 = list(pod, "/status/containerStatuses")
        .map(|one| count(one, "/restartCount"))
        .sum();
    all.to_string().into()
}

pub(super) fn gates(pod: &Value) -> Value {
    let gates: Vec<&Value> = list(pod, "/spec/readinessGates").collect();
    if gates.is_empty() {
        return "<none>".into();
    }
    let met = gates.iter().filter(|gate| {
        list(pod, "/status/conditions")
            .any(|one| text(one, "type") == text(gate, "conditionType") && text(one, "status") == "True")
    });
    format!("{}/{}", met.count(), gates.len()).into()
}

pub(super) fn ready_of_replicas(object: &Value) -> Value {
    format!(
        "{}/{}",
        count(object, "/status/readyReplicas"),
        count(object, "/spec/replicas")
    )
    .into()
}

pub(super) fn job_status(job: &Value) -> Value {
    let holds = |kind: &str| {
        list(job, "/status/conditions").any(|one| text(one, "type") == kind && text(one, "status") == "True")
    };
    let deleting = job.pointer("/metadata/deletionTimestamp").is_some();
    let states = [
        (holds("Complete"), "Complete"),
        (holds("Failed"), "Failed"),
        (deleting, "Terminating"),
        (holds("Suspended"), "Suspended"),
        (holds("FailureTarget"), "FailureTarget"),
        (holds("SuccessCriteriaMet"), "SuccessCriteriaMet"),
    ];
    let found = states.into_iter().find(|(holds, _)| *holds);
    found.map_or("Running", |(_, state)| state).into()
}

pub(super) fn job_completions(job: &Value) -> Value {
    let succeeded = count(job, "/status/succeeded");
    if let Some(wanted) = job.pointer("/spec/completions").and_then(Value::as_i64) {
        return format!("{succeeded}/{wanted}").into();
    }
    match job.pointer("/spec/parallelism").and_then(Value::as_i64) {
        Some(parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        _ => format!("{succeeded}/1"),
    }
    .into()
}

pub(super) fn containers(object: &Value, member: &str) -> Value {
    let names: Vec<&str> = list(object, "/spec/template/spec/containers")
        .map(|one| text(one, member))
        .collect();
    names.join(",").into()
}

pub(super) fn selector(object: &Value) -> Value {
    labels(object.pointer("/spec/selector/matchLabels"))
}

pub(super) fn labels(map: Option<&Value>) -> Value {
    let Some(map) = map.and_then(Value::as_object) else {
        return "<none>".into();
    };
    let pairs: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.join(",").into()
}

pub(super) fn ports(service: &Value) -> Value {
    let ports: Vec<String> = list(service, "/spec/ports")
        .map(|port| format!("{}/{}", count(port, "/port"), text(port, "protocol")))
        .collect();
    if ports.is_empty() {
        "<none>".into()
    } else {
        ports.join(",").into()
    }
}

pub(super) fn node_status(node: &Value) -> Value {
    let ready = list(node, "/status/conditions").find(|one| text(one, "type") == "Ready");
    let mut shown = match ready.map(|one| text(one, "status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node.pointer("/spec/unschedulable") == Some(&true.into()) {
        shown.push_str(",SchedulingDisabled");
    }
    shown.into()
}

pub(super) fn controller(object: &Value) -> Value {
    let owner =
        list(object, "/metadata/ownerReferences").find(|one| one.get("controller") == Some(&true.into()));
    let Some(owner) = owner else {
        return "<none>".into();
    };
    let kind = text(owner, "kind").to_lowercase();
    let group = text(owner, "apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{}", text(owner, "name")).into()
}

pub(super) fn involved(event: &Value) -> Value {
    let object = event.get("involvedObject").unwrap_or(&Value::Null);
    format!("{}/{}", text(object, "kind").to_lowercase(), text(object, "name")).into()
}

/// What an autoscaler is for.
pub(super) fn scaled(scaler: &Value) -> Value {
    let text = |name: &str| {
        let of = scaler.pointer(&format!("/spec/scaleTargetRef/{name}"));
        of.and_then(Value::as_str).unwrap_or_default()
    };
    format!("{}/{}", text("kind"), text("name")).into()
}

/// What an autoscaler aims for; nothing is measured.
pub(super) fn targets(scaler: &Value) -> Value {
    let metrics = scaler.pointer("/spec/metrics").and_then(Value::as_array);
    let shown: Vec<String> = metrics
        .into_iter()
        .flatten()
        .filter_map(|metric| {
            let resource = metric.get("resource")?;
            let name = resource.get("name")?.as_str()?;
            let target = resource.get("target")?;
            let amount = match target.get("averageUtilization") {
                Some(percent) => format!("{percent}%"),
                None => target.get("averageValue")?.as_str()?.to_owned(),
            };
            Some(format!("{name}: <unknown>/{amount}"))
        })
        .collect();
    match shown.as_slice() {
        [] => "<unknown>/<unset>".into(),
        shown => shown.join(", ").into(),
    }
}
