//! What of an object may leave the cluster.
//!
//! A text is kept only if its field is in [`KEPT`]: names, kinds, times, reasons, images, selectors. Every other
//! text becomes [`REDACTED`], also that of fields that this build does not know: values of environment variables,
//! commands, arguments, certificates. Numbers and booleans are kept. What users can put anything into (`data`,
//! `patch`, handlers of probes and hooks, attributes of volumes) is replaced as a whole, see [`OPAQUE`]. Of
//! annotations the keys are kept, and the values of those that are ours, see [`ANNOTATIONS`]. Labels are kept.
//!
//! Messages are kept if Kubernetes or this program writes them. Those that quote a program (how a container ended,
//! why it cannot be created, what a probe printed) are not.

use kruise_api::names::{
    CLAIM_TEMPLATES_HASH, DELETION_COST, INPLACE_STATE, INSTANCE_ID, KRUISE_POD_READY, LEADER_SETTINGS,
    LIFECYCLE_TIMESTAMP, RUNTIME_CONTAINERS_META, TEMPLATE_HASH, conditions, podunavailablebudget,
    resourcedistribution, sidecarset, workloadspread,
};
use kruise_kinds as controllers;
use serde_json::{Map, Value, json};

/// In the place of what is left out.
pub(super) const REDACTED: &str = "<redacted>";

/// Fields whose texts are kept, in any object.
const KEPT: &[&str] = &[
    // Objects and references to objects.
    "apiVersion",
    "kind",
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "fieldPath",
    "reportingComponent",
    "group",
    "groups",
    "finalizers",
    "manager",
    "operation",
    "subresource",
    "fieldsType",
    "controllerKind",
    "podName",
    "nodeName",
    "nominatedNodeName",
    "containerName",
    "claimName",
    "secretName",
    "serviceName",
    "serviceAccountName",
    "schedulerName",
    "runtimeClassName",
    "priorityClassName",
    "storageClassName",
    "volumeName",
    "configMapName",
    "podsToDelete",
    "pullSecrets",
    "podUID",
    "containerID",
    "matchedPods",
    // Times.
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "timestamp",
    "updateTimestamp",
    "startTime",
    "startedAt",
    "finishedAt",
    "completionTime",
    "acceptedTime",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastScheduleTime",
    "lastSuccessfulTime",
    "lastUpdatedTime",
    "firstTimestamp",
    "lastTimestamp",
    "lastObservedTime",
    "eventTime",
    "acquireTime",
    "renewTime",
    "nextRetryAt",
    // Selectors, affinity and tolerations.
    "key",
    "operator",
    "values",
    "effect",
    "topologyKey",
    "nodeTopologyKey",
    "whenUnsatisfiable",
    "labelSelector",
    "nodeTopologyKeys",
    "conditionType",
    // Statuses.
    "type",
    "status",
    "reason",
    "message",
    "phase",
    "state",
    "qosClass",
    "image",
    "imageID",
    "tag",
    "currentRevision",
    "updateRevision",
    "stableRevision",
    "revision",
    "revisions",
    "version",
    "observedVersion",
    "latestRevision",
    "firstSyncStatus",
    "unavailableNodes",
    "failedNodes",
    "desired",
    "succeeded",
    // Rules of workloads. Numbers may be written as texts, such as 20%.
    "partition",
    "maxUnavailable",
    "minAvailable",
    "maxSurge",
    "maxReplicas",
    "minReplicas",
    "replicas",
    "parallelism",
    "completions",
    "unavailable",
    "schedule",
    "timeZone",
    "concurrencyPolicy",
    "restartPolicy",
    "imagePullPolicy",
    "pullPolicy",
    "podUpdatePolicy",
    "podManagementPolicy",
    "whenDeleted",
    "whenScaled",
    "rollingUpdateType",
    "policy",
    "podInjectPolicy",
    "upgradeType",
    "hotUpgradeEmptyImage",
    "customVersion",
    "revisionName",
    "shareVolumePolicy",
    "patchPolicy",
    "failurePolicy",
    "completionPolicy",
    "orderedRecreate",
    "scaleStrategy",
    "strategy",
    "order",
    "protectOperations",
    "rescheduleStrategy",
    "accessModes",
    "protocol",
    "medium",
    "volumeMode",
    "includedNamespaces",
    "excludedNamespaces",
    "conflictPolicy",
    "writtenBy",
    // Leases.
    "holderIdentity",
    "holder",
    "featureGates",
    // Annotations of ours with JSON.
    "hash",
    "sidecarSetName",
    "sidecarSetHash",
    "sidecarSetControllerRevision",
    "sidecarList",
    "subset",
];

/// Maps of texts with keys that users choose, which are kept: labels, quantities, and names of pods with times.
const KEPT_MAPS: &[&str] = &[
    "labels",
    "matchLabels",
    "nodeSelector",
    "nodeTopologyLabels",
    "limits",
    "requests",
    "capacity",
    "allocatedResources",
    "disruptedPods",
    "unavailablePods",
    "creatingPods",
    "deletingPods",
    "subsetUnscheduledStatus",
];

/// Fields that may hold anything, replaced as a whole.
const OPAQUE: &[&str] = &[
    "data",
    "stringData",
    "binaryData",
    "patch",
    "args",
    "command",
    "exec",
    "httpGet",
    "httpHeaders",
    "tcpSocket",
    "grpc",
    "csi",
    "flexVolume",
    "parameters",
    "attributes",
    "volumeAttributes",
    "options",
    "caBundle",
    "fieldsV1",
    "sysctls",
    "raw",
];

/// Annotations whose values are kept. In values that are JSON, the same rules hold.
const ANNOTATIONS: &[&str] = &[
    CLAIM_TEMPLATES_HASH,
    DELETION_COST,
    INPLACE_STATE,
    INSTANCE_ID,
    LEADER_SETTINGS,
    LIFECYCLE_TIMESTAMP,
    RUNTIME_CONTAINERS_META,
    TEMPLATE_HASH,
    podunavailablebudget::PROTECT_OPERATIONS,
    podunavailablebudget::PROTECT_TOTAL_REPLICAS,
    podunavailablebudget::RELATED,
    resourcedistribution::COPY_FROM,
    resourcedistribution::COPY_HASH,
    sidecarset::HASH,
    sidecarset::HASH_WITHOUT_IMAGE,
    sidecarset::INJECTED_LIST,
    sidecarset::WORKING,
    workloadspread::MATCHED,
];

/// Conditions of pods whose messages do not quote a program. The results of probes are conditions with names that
/// users choose.
const POD_CONDITIONS: &[&str] = &[
    conditions::READY,
    conditions::INITIALIZED,
    KRUISE_POD_READY,
    "ContainersReady",
    "PodScheduled",
    "PodReadyToStartContainers",
    "DisruptionTarget",
    "PodResizePending",
    "PodResizeInProgress",
    "InPlaceUpdateReady",
];

/// Reasons for which a container waits whose messages do not quote its command.
const WAITING: &[&str] = &[
    "ContainerCreating",
    "PodInitializing",
    "CrashLoopBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "InvalidImageName",
];

/// Reasons of events of pods by the kubelet whose messages do not quote a program or a command.
const KUBELET_EVENTS: &[&str] = &[
    "Pulling",
    "Pulled",
    "Created",
    "Started",
    "Killing",
    "BackOff",
    "FailedScheduling",
    "NodeNotReady",
    "Evicted",
    "Preempting",
    "ErrImageNeverPull",
    "ContainerGCFailed",
];

/// Longest message that is kept, in bytes.
const LONGEST_MESSAGE: usize = 512;

/// The object without what must not leave the cluster.
pub(super) fn object(object: &Value) -> Value {
    let mut kept = value("", object);
    // The object that a ResourceDistribution makes copies of.
    if let (Some(resource), Some(kept)) = (
        object.pointer("/spec/resource"),
        kept.pointer_mut("/spec/resource"),
    ) && resource.is_object()
    {
        let text = |pointer| resource.pointer(pointer).filter(|text| text.is_string());
        *kept = json!({
            "apiVersion": text("/apiVersion"),
            "kind": text("/kind"),
            "metadata": {"name": text("/metadata/name")},
        });
    }
    if object.get("kind").is_some_and(|kind| kind == "Pod") {
        let conditions = kept
            .pointer_mut("/status/conditions")
            .and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            let is_known = |kind: &Value| kind.as_str().is_some_and(|kind| POD_CONDITIONS.contains(&kind));
            // Results of probes have no reason, whatever condition they are written to.
            let has_reason = condition.get("reason").is_some_and(|reason| reason != "");
            if !has_reason || !condition.get("type").is_some_and(is_known) {
                hide(condition, "message");
            }
        }
    }
    kept
}

/// A pod: its metadata and status, where it runs, and its containers by name and image.
pub(super) fn pod(pod: &Value) -> Value {
    let containers = |name: &str| {
        let all = pod.pointer(name).and_then(Value::as_array)?;
        let named = all
            .iter()
            .map(|one| json!({"name": one.get("name"), "image": one.get("image")}));
        Some(Value::Array(named.collect()))
    };
    let mut spec = Map::new();
    for (field, found) in [
        ("nodeName", pod.pointer("/spec/nodeName").cloned()),
        ("readinessGates", pod.pointer("/spec/readinessGates").cloned()),
        ("initContainers", containers("/spec/initContainers")),
        ("containers", containers("/spec/containers")),
    ] {
        spec.extend(found.map(|found| (field.to_owned(), found)));
    }
    object(&json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pod.get("metadata"),
        "spec": spec,
        "status": pod.get("status"),
    }))
}

/// An event: about what, why, when and how often. A message is left out if it quotes a program, or is of a reporter
/// that is not known.
pub(super) fn event(event: &Value) -> Value {
    let text = |pointer| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let reporter = [text("/reportingComponent"), text("/source/component")]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default();
    let mut kept = object(&json!({
        "metadata": {"namespace": event.pointer("/metadata/namespace"), "name": event.pointer("/metadata/name")},
        "involvedObject": event.get("involvedObject"),
        "reportingComponent": reporter,
        "type": event.get("type"),
        "reason": event.get("reason"),
        "message": event.get("message"),
        "count": event.get("count"),
        "firstTimestamp": event.get("firstTimestamp"),
        "lastTimestamp": event.get("lastTimestamp"),
        "eventTime": event.get("eventTime"),
        "series": event.get("series"),
    }));
    let is_known = match reporter {
        "kubelet" => KUBELET_EVENTS.contains(&text("/reason")),
        "default-scheduler" => true,
        reporter => controllers::ALL.iter().any(|one| one.name == reporter),
    };
    if !is_known {
        hide(&mut kept, "message");
    }
    kept
}

fn hide(object: &mut Value, field: &str) {
    if let Some(found) = object.get_mut(field) {
        *found = REDACTED.into();
    }
}

/// The value of a field; that of the array for the items of an array.
fn value(field: &str, found: &Value) -> Value {
    match found {
        Value::Null => Value::Null,
        _ if OPAQUE.contains(&field) => REDACTED.into(),
        Value::Object(members) if field == "annotations" => annotations(members),
        Value::Object(members) if KEPT_MAPS.contains(&field) => flat(members),
        Value::Object(members) => fields(field, members),
        Value::Array(items) => items.iter().map(|item| value(field, item)).collect(),
        Value::String(text) if field == "message" => first_line(text).into(),
        Value::String(_) if KEPT.contains(&field) => found.clone(),
        // An environment variable is a text in a valid object only.
        Value::Number(_) | Value::Bool(_) if field != "value" => found.clone(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => REDACTED.into(),
    }
}

/// The beginning of a message. API servers append the difference of two objects to some errors, in further lines.
fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let end = (0..=LONGEST_MESSAGE.min(line.len()))
        .rev()
        .find(|end| line.is_char_boundary(*end));
    line.get(..end.unwrap_or_default()).unwrap_or_default()
}

fn fields(field: &str, members: &Map<String, Value>) -> Value {
    let reason = members.get("reason").and_then(Value::as_str).unwrap_or_default();
    let quotes_a_program = match field {
        "terminated" | "probeStates" => true,
        "waiting" => !WAITING.contains(&reason),
        _ => false,
    };
    let kept = members.iter().map(|(name, member)| {
        let kept = if quotes_a_program && name == "message" {
            REDACTED.into()
        } else {
            value(name, member)
        };
        (name.clone(), kept)
    });
    Value::Object(kept.collect())
}

/// A map of texts and numbers, without what is deeper.
fn flat(members: &Map<String, Value>) -> Value {
    let kept = members.iter().map(|(name, member)| {
        let kept = match member {
            Value::Object(_) | Value::Array(_) => value("", member),
            flat => flat.clone(),
        };
        (name.clone(), kept)
    });
    Value::Object(kept.collect())
}

fn annotations(members: &Map<String, Value>) -> Value {
    let kept = members.iter().map(|(name, member)| {
        let text = member.as_str().filter(|_| ANNOTATIONS.contains(&name.as_str()));
        let kept = match text.map(|text| (text, serde_json::from_str::<Value>(text))) {
            None => REDACTED.to_owned(),
            Some((_, Ok(json @ (Value::Object(_) | Value::Array(_))))) => value("", &json).to_string(),
            Some((text, _)) => text.to_owned(),
        };
        (name.clone(), kept.into())
    });
    Value::Object(kept.collect())
}

#[cfg(test)]
mod tests;
