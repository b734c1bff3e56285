//! A ContainerRecreateRequest as the agent of its pod's node reads it.

use jiff::Timestamp;
use kruise_api::meta::null_as_default;
use kruise_api::names::conditions::PRE_RECREATE_GRACE;
use kruise_api::names::containerrecreaterequest::{
    ACTIVE, NODE_NAME, POD_UID, SYNC_CONTAINER_STATUSES, UNREADY_ACQUIRED,
};
use kruise_views::Labels;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;

use crate::ContainerId;

/// A ContainerRecreateRequest, in `v1beta1` or `v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Wire")]
pub struct RequestView {
    /// Namespace of the request and of its pod.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Is it being deleted?
    pub deleting: bool,
    /// Its label `crr.apps.kruise.io/active`: it has not been finished for its manager.
    pub is_active: bool,
    /// Its label `crr.apps.kruise.io/node-name`.
    pub node: Box<str>,
    /// Name of the pod.
    pub pod: Box<str>,
    /// UID of the pod, its label `crr.apps.kruise.io/pod-uid`; empty if there is none.
    pub pod_uid: Box<str>,
    /// The containers that are replaced, in this order.
    pub containers: Box<[RequestedContainer]>,
    /// How they are replaced.
    pub strategy: Strategy,
    /// What was reported.
    pub status: RequestStatus,
    /// The containers of the pod that have started since the request was created, as the manager has last seen them.
    pub snapshot: Box<[SnapshotEntry]>,
    /// When the manager took the pod out of service.
    pub unready_since: Option<Timestamp>,
}

impl kube_cache::Cached for RequestView {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn is_terminating(&self) -> bool {
        self.deleting
    }
}

/// A container that is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestedContainer {
    /// Name in the pod.
    #[serde(deserialize_with = "null_as_default")]
    pub name: Box<str>,
    /// Its preStop hook, as far as a request has a place for it.
    pub pre_stop: Option<Value>,
    /// Its ports, if the hook names one.
    pub ports: Value,
    /// The container that is to be replaced.
    pub status_context: Option<StatusContext>,
}

/// A container as it was when the request was created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusContext {
    /// Its id, after the name of its runtime: `containerd://0123…`.
    #[serde(rename = "containerID", deserialize_with = "null_as_default")]
    pub container_id: Box<str>,
    /// Restarts before it.
    #[serde(deserialize_with = "null_as_default")]
    pub restart_count: i32,
}

/// How containers are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// `Ignore` goes on after a container that could not be stopped.
    #[serde(deserialize_with = "null_as_default")]
    pub failure_policy: Box<str>,
    /// Is a container stopped only when those before it have been replaced?
    #[serde(deserialize_with = "null_as_default")]
    pub ordered_recreate: bool,
    /// Is a container stopped even if it was replaced since the request was created?
    #[serde(deserialize_with = "null_as_default")]
    pub force_recreate: bool,
    /// Seconds for hook and end of a container together.
    pub termination_grace_period_seconds: Option<i64>,
    /// Seconds that the pod is out of service before the first container is stopped.
    pub unready_grace_period_seconds: Option<i64>,
    /// Seconds that a new container runs before it counts.
    #[serde(deserialize_with = "null_as_default")]
    pub min_started_seconds: i32,
}

/// What the agent reports of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestStatus {
    /// Empty, `Pending`, `Recreating` or `Completed`.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: Box<str>,
    /// When it was over.
    pub completion_time: Option<Timestamp>,
    /// What it waits for, or why it failed.
    #[serde(deserialize_with = "null_as_default")]
    pub message: Box<str>,
    /// One entry for each container, in the order of the specification.
    #[serde(deserialize_with = "null_as_default")]
    pub container_recreate_states: Vec<ContainerState>,
}

/// How far a container is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerState {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: Box<str>,
    /// How far it is.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: ContainerPhase,
    /// What it waits for, or why it failed.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
    /// Has an agent stopped it for this request?
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_killed: bool,
}

/// How far a container is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ContainerPhase {
    /// It has not been stopped.
    #[default]
    Pending,
    /// It is being replaced.
    Recreating,
    /// Its successor is ready. Final.
    Succeeded,
    /// It could not be stopped. Final.
    Failed,
    /// A phase that this build does not know.
    #[serde(other)]
    Unknown,
}

impl ContainerPhase {
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A container of the pod, as the manager has last seen it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotEntry {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: Box<str>,
    /// Is it ready?
    #[serde(deserialize_with = "null_as_default")]
    pub ready: bool,
    /// Its id, after the name of its runtime.
    #[serde(rename = "containerID", deserialize_with = "null_as_default")]
    pub container_id: Box<str>,
}

/// A pod as it is read before its containers are stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "PodWire")]
pub struct PodHooks {
    /// UID.
    pub uid: Box<str>,
    /// Is it being deleted?
    pub deleting: bool,
    /// Its address, once it has one.
    pub ip: Option<Box<str>>,
    /// When the kubelet starts its containers again.
    pub restarts: Restarts,
    /// The hooks and ports of its containers, those of sidecars among the init containers included.
    pub containers: Box<[ContainerHook]>,
}

/// The hook of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerHook {
    /// Its name.
    pub name: Box<str>,
    /// Its preStop hook.
    pub pre_stop: Option<Value>,
    /// Its ports.
    pub ports: Value,
    /// When the kubelet starts it again, if its own specification says so.
    pub restarts: Option<Restarts>,
}

/// When the kubelet starts a container again that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restarts {
    /// Whatever it ended with, or by rules that this build does not read.
    #[default]
    Always,
    /// Unless it ended with exit code 0.
    OnFailure,
    /// Not at all.
    Never,
}

impl Restarts {
    fn of(policy: &str) -> Self {
        match policy {
            "Never" => Self::Never,
            "OnFailure" => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

impl PodHooks {
    /// Is a container that ended with this code the last of its name?
    pub(crate) fn is_last(&self, container: &str, exit_code: i32) -> bool {
        let mut containers = self.containers.iter();
        let own = containers.find(|one| &*one.name == container);
        match own.and_then(|own| own.restarts).unwrap_or(self.restarts) {
            Restarts::Always => false,
            Restarts::OnFailure => exit_code == 0,
            Restarts::Never => true,
        }
    }
}

impl RequestView {
    /// Is there nothing left to do?
    pub(crate) fn is_over(&self) -> bool {
        let is_finished = self.status.completion_time.is_some() || &*self.status.phase == COMPLETED;
        is_finished || self.deleting || !self.is_active
    }

    /// The reported state of a container.
    pub(crate) fn state(&self, name: &str) -> Option<&ContainerState> {
        let mut states = self.status.container_recreate_states.iter();
        states.find(|state| &*state.name == name)
    }

    /// Is a container with this id ready, as far as the manager has seen?
    pub(crate) fn is_ready(&self, name: &str, id: &ContainerId) -> bool {
        let id = id.to_string();
        let mut snapshot = self.snapshot.iter();
        snapshot.any(|entry| &*entry.name == name && *entry.container_id == id && entry.ready)
    }
}

/// Phase of a request whose turn has not come.
pub(crate) const PENDING: &str = "Pending";
/// Phase of a request that runs.
pub(crate) const RECREATING: &str = "Recreating";
/// Phase of a request that is over, well or badly.
pub(crate) const COMPLETED: &str = "Completed";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    api_version: Box<str>,
    metadata: Metadata,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "null_as_default")]
    labels: Labels,
    #[serde(deserialize_with = "null_as_default")]
    annotations: Labels,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    pod_name: Box<str>,
    containers: Option<Vec<RequestedContainer>>,
    strategy: Option<Strategy>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(flatten)]
    reported: RequestStatus,
    container_status_snapshot: Option<Vec<SnapshotEntry>>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    last_transition_time: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodWire {
    metadata: Metadata,
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    restart_policy: Option<Box<str>>,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: Option<Box<str>>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    name: Box<str>,
    ports: Value,
    lifecycle: Option<Lifecycle>,
    restart_policy: Option<Box<str>>,
    restart_policy_rules: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Lifecycle {
    pre_stop: Option<Value>,
}

impl From<Wire> for RequestView {
    fn from(wire: Wire) -> Self {
        let Wire {
            api_version,
            metadata,
            spec,
            status,
        } = wire;
        let (spec, status) = (spec.unwrap_or_default(), status.unwrap_or_default());
        let label = |key| metadata.labels.get(key).unwrap_or_default();
        // The older version has no place in its status for what a manager writes there.
        let written = |key| {
            let is_older = api_version.ends_with("/v1alpha1");
            metadata.annotations.get(key).filter(|_| is_older)
        };
        let holds = |one: &Condition| &*one.kind == PRE_RECREATE_GRACE && &*one.status == "True";
        let mut conditions = status.conditions.into_iter().flatten();
        let unready_since = conditions
            .find(holds)
            .and_then(|condition| condition.last_transition_time)
            .or_else(|| written(UNREADY_ACQUIRED)?.parse().ok());
        let snapshot = status
            .container_status_snapshot
            .or_else(|| serde_json::from_str(written(SYNC_CONTAINER_STATUSES)?).ok());
        Self {
            created: metadata.creation_timestamp,
            deleting: metadata.deletion_timestamp.is_some(),
            is_active: label(ACTIVE) == "true",
            node: label(NODE_NAME).into(),
            pod_uid: label(POD_UID).into(),
            pod: spec.pod_name,
            containers: spec.containers.unwrap_or_default().into(),
            strategy: spec.strategy.unwrap_or_default(),
            status: status.reported,
            snapshot: snapshot.unwrap_or_default().into(),
            unready_since,
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
        }
    }
}

impl From<PodWire> for PodHooks {
    fn from(wire: PodWire) -> Self {
        let PodSpec {
            restart_policy,
            containers,
            init_containers,
        } = wire.spec;
        // Whatever was to be started again, in a pod that is over nothing is.
        let is_over = matches!(wire.status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let containers = containers.into_iter().chain(init_containers).flatten();
        let containers = containers.map(|one| ContainerHook {
            name: one.name,
            pre_stop: one.lifecycle.and_then(|lifecycle| lifecycle.pre_stop),
            ports: one.ports,
            restarts: match (one.restart_policy, one.restart_policy_rules) {
                _ if is_over => None,
                (_, Some(_)) => Some(Restarts::Always),
                (policy, None) => policy.as_deref().map(Restarts::of),
            },
        });
        Self {
            uid: wire.metadata.uid,
            deleting: wire.metadata.deletion_timestamp.is_some(),
            ip: wire.status.pod_ip.filter(|ip| !ip.is_empty()),
            restarts: if is_over {
                Restarts::Never
            } else {
                restart_policy.as_deref().map(Restarts::of).unwrap_or_default()
            },
            containers: containers.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(object: Value) -> RequestView {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn s4_8_13_both_versions_say_the_same() {
        let snapshot =
            json!([{"name": "app", "ready": true, "restartCount": 1, "containerID": "containerd://2"}]);
        let time = "2026-01-02T03:04:05Z";
        let newer = read(json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "status": {"phase": "Recreating", "containerStatusSnapshot": snapshot, "conditions": [
                {"type": "Other", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"},
                {"type": "PreRecreateGrace", "status": "True", "lastTransitionTime": time}]}}));
        let annotations = json!({SYNC_CONTAINER_STATUSES: snapshot.to_string(), UNREADY_ACQUIRED: time});
        let older = |version: &str| {
            read(
                json!({"apiVersion": format!("apps.kruise.io/{version}"), "metadata": {"annotations": annotations},
                "status": {"phase": "Recreating"}}),
            )
        };
        assert_eq!(newer, older("v1alpha1"));
        assert_eq!(newer.unready_since, Some(time.parse().unwrap()));
        let id = ContainerId {
            runtime: "containerd".into(),
            id: "2".into(),
        };
        assert!(newer.is_ready("app", &id) && !newer.is_ready("other", &id));
        // The newer version keeps annotations that say nothing any more.
        let kept = older("v1beta1");
        assert_eq!((kept.unready_since, kept.snapshot.len()), (None, 0));
    }

    #[test]
    fn a_condition_that_does_not_hold_is_none() {
        let condition = json!({"type": "PreRecreateGrace", "status": "False", "lastTransitionTime": "2026-01-02T03:04:05Z"});
        let view = read(json!({"status": {"conditions": [condition]}}));
        assert_eq!(view.unready_since, None);
    }

    #[test]
    fn what_cannot_be_read_of_annotations_and_nulls_is_nothing() {
        let view = read(json!({
            "apiVersion": "apps.kruise.io/v1alpha1",
            "metadata": {"labels": null, "annotations": {SYNC_CONTAINER_STATUSES: "{", UNREADY_ACQUIRED: "now"}},
            "spec": {"podName": null, "containers": [{"name": null, "preStop": null, "ports": null, "statusContext": null}],
                     "strategy": null},
            "status": {"phase": null, "message": null, "containerRecreateStates": [{"name": "a", "phase": "Odd"}]}}));
        assert_eq!((view.unready_since, view.snapshot.len()), (None, 0));
        assert_eq!(view.containers.len(), 1);
        assert_eq!(view.state("a").unwrap().phase, ContainerPhase::Unknown);
        assert_eq!(read(json!({})), RequestView::default());
    }

    #[test]
    fn a_request_is_over_when_it_has_ended_or_is_no_longer_active() {
        let active = json!({ACTIVE: "true"});
        let over =
            |metadata: Value, status: Value| read(json!({"metadata": metadata, "status": status})).is_over();
        assert!(!over(json!({"labels": active}), json!({"phase": "Recreating"})));
        assert!(over(json!({}), json!({})));
        assert!(over(json!({"labels": active}), json!({"phase": "Completed"})));
        assert!(over(
            json!({"labels": active}),
            json!({"phase": "Recreating", "completionTime": "2026-01-02T03:04:05Z"})
        ));
        assert!(over(
            json!({"labels": active, "deletionTimestamp": "2026-01-02T03:04:05Z"}),
            json!({})
        ));
    }

    #[test]
    fn hooks_of_sidecars_are_read_too() {
        let pod: PodHooks = serde_json::from_value(json!({
            "metadata": {"uid": "u", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "app", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}],
                     "initContainers": [{"name": "proxy", "restartPolicy": "Always", "ports": [{"containerPort": 1}]}]},
            "status": {"podIP": "10.0.0.7"}}))
        .unwrap();
        assert_eq!(
            (&*pod.uid, pod.ip.as_deref(), pod.deleting),
            ("u", Some("10.0.0.7"), false)
        );
        let hooks: Vec<(&str, bool, bool)> = pod
            .containers
            .iter()
            .map(|one| (&*one.name, one.pre_stop.is_some(), one.ports.is_array()))
            .collect();
        assert_eq!(hooks, [("app", true, false), ("proxy", false, true)]);
    }

    #[test]
    fn which_run_of_a_container_is_the_last_is_said_by_its_own_policy_then_by_that_of_its_pod() {
        let pod = |policy: Value, phase: &str| -> PodHooks {
            serde_json::from_value(json!({
                "spec": {"restartPolicy": policy,
                    "containers": [{"name": "app"}, {"name": "own", "restartPolicy": "OnFailure"},
                        {"name": "ruled", "restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}],
                    "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]},
                "status": {"phase": phase}}))
            .unwrap()
        };
        let last = |pod: &PodHooks, code| {
            let names = ["app", "own", "ruled", "proxy"].into_iter();
            let last: Vec<&str> = names.filter(|name| pod.is_last(name, code)).collect();
            last.join(" ")
        };
        for (policy, phase, ended_well, failed) in [
            (Value::Null, "Running", "own", ""),
            (json!("Always"), "Running", "own", ""),
            (json!("OnFailure"), "Running", "app own", ""),
            (json!("Never"), "Running", "app own", "app"),
            (
                json!("Always"),
                "Succeeded",
                "app own ruled proxy",
                "app own ruled proxy",
            ),
            (
                json!("OnFailure"),
                "Failed",
                "app own ruled proxy",
                "app own ruled proxy",
            ),
        ] {
            let pod = pod(policy.clone(), phase);
            assert_eq!(
                (&*last(&pod, 0), &*last(&pod, 137)),
                (ended_well, failed),
                "{policy} {phase}"
            );
        }
    }
}
