//! Which columns a kind has.

use serde_json::Value;

use crate::api::Call;
use crate::registry::Schema;

/// A column.
pub(super) struct Column {
    pub(super) name: String,
    /// JSON type.
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) description: String,
    /// Above zero, only wide output shows it.
    pub(super) priority: i64,
    pub(super) cell: Cell,
}

/// Where a cell's value comes from.
pub(super) enum Cell {
    Name,
    Age,
    /// A member, or `<none>`.
    Pointer(&'static str),
    /// A member, or nothing.
    Optional(&'static str),
    /// A count, or zero.
    Count(&'static str),
    /// How many items or members.
    Length(&'static str),
    /// A time as an age.
    Date(String),
    /// A member, or nothing: custom columns.
    Custom(String),
    Function(fn(&Value) -> Value),
}

fn column(name: &str, kind: &str, cell: Cell) -> Column {
    Column {
        name: name.into(),
        kind: kind.into(),
        format: if name == "Name" {
            "name".into()
        } else {
            String::new()
        },
        description: String::new(),
        priority: 0,
        cell,
    }
}

fn wide(name: &str, cell: Cell) -> Column {
    Column {
        priority: 1,
        ..column(name, "string", cell)
    }
}

pub(super) fn columns(call: &Call<'_>) -> Vec<Column> {
    if let Schema::Structural(version) = &call.version.schema {
        return custom(version);
    }
    let mut out = vec![column("Name", "string", Cell::Name)];
    let age = || column("Age", "string", Cell::Age);
    let kind = call.resource.kind.as_ref();
    match kind {
        "Pod" => out.extend([
            column("Ready", "string", Cell::Function(ready)),
            column("Status", "string", Cell::Function(pod_status)),
            column("Restarts", "string", Cell::Function(restarts)),
            age(),
            wide("IP", Cell::Pointer("/status/podIP")),
            wide("Node", Cell::Pointer("/spec/nodeName")),
            wide("Nominated Node", Cell::Pointer("/status/nominatedNodeName")),
            wide("Readiness Gates", Cell::Function(gates)),
        ]),
        "Deployment" => out.extend([
            column("Ready", "string", Cell::Function(ready_of_replicas)),
            column("Up-to-date", "string", Cell::Count("/status/updatedReplicas")),
            column("Available", "string", Cell::Count("/status/availableReplicas")),
            age(),
            wide("Containers", Cell::Function(|object| containers(object, "name"))),
            wide("Images", Cell::Function(|object| containers(object, "image"))),
            wide("Selector", Cell::Function(selector)),
        ]),
        "ReplicaSet" => out.extend([
            column("Desired", "integer", Cell::Count("/spec/replicas")),
            column("Current", "integer", Cell::Count("/status/replicas")),
            column("Ready", "integer", Cell::Count("/status/readyReplicas")),
            age(),
            wide("Containers", Cell::Function(|object| containers(object, "name"))),
            wide("Images", Cell::Function(|object| containers(object, "image"))),
            wide("Selector", Cell::Function(selector)),
        ]),
        "Namespace" | "PersistentVolume" => {
            out.extend([column("Status", "string", Cell::Pointer("/status/phase")), age()]);
        }
        "ConfigMap" => out.extend([column("Data", "string", Cell::Length("/data")), age()]),
        "Secret" => out.extend([
            column("Type", "string", Cell::Optional("/type")),
            column("Data", "string", Cell::Length("/data")),
            age(),
        ]),
        "Service" => out.extend([
            column("Type", "string", Cell::Optional("/spec/type")),
            column("Cluster-IP", "string", Cell::Pointer("/spec/clusterIP")),
            column("External-IP", "string", Cell::Function(|_| "<none>".into())),
            column("Port(s)", "string", Cell::Function(ports)),
            age(),
            wide(
                "Selector",
                Cell::Function(|object| labels(object.pointer("/spec/selector"))),
            ),
        ]),
        "Node" => out.extend([
            column("Status", "string", Cell::Function(node_status)),
            column("Roles", "string", Cell::Function(|_| "<none>".into())),
            age(),
            column(
                "Version",
                "string",
                Cell::Pointer("/status/nodeInfo/kubeletVersion"),
            ),
        ]),
        "Lease" => out.extend([
            column("Holder", "string", Cell::Pointer("/spec/holderIdentity")),
            age(),
        ]),
        "ControllerRevision" => out.extend([
            column("Controller", "string", Cell::Function(controller)),
            column("Revision", "string", Cell::Count("/revision")),
            age(),
        ]),
        "Event" => {
            out = vec![
                column("Last Seen", "string", Cell::Date("/lastTimestamp".into())),
                column("Type", "string", Cell::Optional("/type")),
                column("Reason", "string", Cell::Pointer("/reason")),
                column("Object", "string", Cell::Function(involved)),
                column("Message", "string", Cell::Pointer("/message")),
            ];
        }
        "CustomResourceDefinition" => {
            out.push(column(
                "Created At",
                "date",
                Cell::Pointer("/metadata/creationTimestamp"),
            ));
        }
        "PersistentVolumeClaim" => out.extend([
            column("Status", "string", Cell::Function(claim_status)),
            column("Volume", "string", Cell::Optional("/spec/volumeName")),
            column("Capacity", "string", Cell::Optional("/status/capacity/storage")),
            column("Access Modes", "string", Cell::Function(access_modes)),
            column("StorageClass", "string", Cell::Optional("/spec/storageClassName")),
            column(
                "VolumeAttributesClass",
                "string",
                Cell::Function(|_| "<unset>".into()),
            ),
            age(),
            wide("VolumeMode", Cell::Pointer("/spec/volumeMode")),
        ]),
        "PodDisruptionBudget" => out.extend([
            column(
                "Min Available",
                "string",
                Cell::Function(|one| bound(one, "/spec/minAvailable")),
            ),
            column(
                "Max Unavailable",
                "string",
                Cell::Function(|one| bound(one, "/spec/maxUnavailable")),
            ),
            column(
                "Allowed Disruptions",
                "integer",
                Cell::Count("/status/disruptionsAllowed"),
            ),
            age(),
        ]),
        "ServiceAccount" => out.extend([column("Secrets", "string", Cell::Length("/secrets")), age()]),
        _ => out.push(age()),
    }
    for column in &mut out {
        column.description = description(kind, &column.name);
    }
    out
}

/// What a server says of a column: a kind (or `*`), the column and a JSON text a line, as kube-apiserver 1.34 has them.
fn description(kind: &str, column: &str) -> String {
    let lines = include_str!("descriptions.txt").lines();
    let found = lines.filter_map(|line| {
        let mut words = line.splitn(3, '\t');
        let (of, name, text) = (words.next()?, words.next()?, words.next()?);
        (name == column && (of == kind || of == "*")).then_some((of == kind, text))
    });
    // a kind's own word counts more
    let best = found.max_by_key(|(own, _)| *own);
    best.and_then(|(_, text)| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

fn claim_status(claim: &Value) -> Value {
    if claim.pointer("/metadata/deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    claim
        .pointer("/status/phase")
        .cloned()
        .unwrap_or_else(|| "".into())
}

/// Modes of a bound claim, in short.
fn access_modes(claim: &Value) -> Value {
    let modes = list(claim, "/status/accessModes").filter_map(|mode| {
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
fn bound(budget: &Value, pointer: &str) -> Value {
    match budget.pointer(pointer) {
        None => "N/A".into(),
        Some(Value::String(text)) => text.as_str().into(),
        Some(number) => number.to_string().into(),
    }
}

/// The columns of a definition; its paths without filters are pointers.
fn custom(version: &Value) -> Vec<Column> {
    let mut out = vec![column("Name", "string", Cell::Name)];
    let text = |of: &Value, name: &str| {
        of.get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let given = version.get("additionalPrinterColumns").and_then(Value::as_array);
    for one in given.into_iter().flatten() {
        let pointer = text(one, "jsonPath").replace('.', "/");
        let kind = text(one, "type");
        let cell = if kind == "date" {
            Cell::Date(pointer)
        } else {
            Cell::Custom(pointer)
        };
        out.push(Column {
            name: text(one, "name"),
            format: text(one, "format"),
            description: match text(one, "description") {
                given if given.is_empty() => {
                    let path = text(one, "jsonPath");
                    format!("Custom resource definition column (in JSONPath format): {path}")
                }
                given => given,
            },
            priority: one.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            kind,
            cell,
        });
    }
    if given.is_none() {
        out.push(column("Age", "date", Cell::Age));
    }
    for column in out.iter_mut().filter(|column| column.description.is_empty()) {
        column.description = description("", &column.name);
    }
    out
}

fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn count(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

fn ready(pod: &Value) -> Value {
    let all = list(pod, "/spec/containers").count();
    let ready = list(pod, "/status/containerStatuses").filter(|one| one.get("ready") == Some(&true.into()));
    format!("{}/{all}", ready.count()).into()
}

fn pod_status(pod: &Value) -> Value {
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

fn restarts(pod: &Value) -> Value {
    let all: i64 = list(pod, "/status/containerStatuses")
        .map(|one| count(one, "/restartCount"))
        .sum();
    all.to_string().into()
}

fn gates(pod: &Value) -> Value {
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

fn ready_of_replicas(object: &Value) -> Value {
    format!(
        "{}/{}",
        count(object, "/status/readyReplicas"),
        count(object, "/spec/replicas")
    )
    .into()
}

fn containers(object: &Value, member: &str) -> Value {
    let names: Vec<&str> = list(object, "/spec/template/spec/containers")
        .map(|one| text(one, member))
        .collect();
    names.join(",").into()
}

fn selector(object: &Value) -> Value {
    labels(object.pointer("/spec/selector/matchLabels"))
}

fn labels(map: Option<&Value>) -> Value {
    let Some(map) = map.and_then(Value::as_object) else {
        return "<none>".into();
    };
    let pairs: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.join(",").into()
}

fn ports(service: &Value) -> Value {
    let ports: Vec<String> = list(service, "/spec/ports")
        .map(|port| format!("{}/{}", count(port, "/port"), text(port, "protocol")))
        .collect();
    if ports.is_empty() {
        "<none>".into()
    } else {
        ports.join(",").into()
    }
}

fn node_status(node: &Value) -> Value {
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

fn controller(object: &Value) -> Value {
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

fn involved(event: &Value) -> Value {
    let object = event.get("involvedObject").unwrap_or(&Value::Null);
    format!("{}/{}", text(object, "kind").to_lowercase(), text(object, "name")).into()
}
