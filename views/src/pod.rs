//! A pod: the fields that planners read.

use jiff::Timestamp;
use kruise_api::{meta::OwnerReference, names};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::{AmountsView, Labels, OwnerView, WrittenView, amounts, written};

/// Identity, placement, images, conditions and container states of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Labels, all of them.
    pub labels: Labels,
    /// Annotations that planners read. Pods with injected sidecars keep all of them, because a SidecarSet may patch any.
    pub annotations: Labels,
    /// Finalizers.
    pub finalizers: Box<[Box<str>]>,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// Being deleted?
    pub deleting: bool,
    /// `deletionTimestamp`: when the grace period of a pod that is being deleted ends.
    pub gone_by: Option<Timestamp>,
    /// The controlling owner.
    pub controller: Option<Box<OwnerView>>,
    /// Node it is bound to.
    pub node: Option<Box<str>>,
    /// Condition types in `spec.readinessGates`.
    pub gates: Box<[Box<str>]>,
    /// Names of the init containers, in order; empty for pods without injected sidecars.
    pub init_containers: Box<[Box<str>]>,
    /// Regular containers in order.
    pub containers: Box<[ContainerView]>,
    /// Is `restartPolicy` `Always`?
    pub restarts_always: bool,
    /// Is one of its volumes a persistent volume claim?
    pub has_claims: bool,
    /// Phase.
    pub phase: Phase,
    /// Conditions.
    pub conditions: Box<[ConditionView]>,
    /// States of the regular containers.
    pub statuses: Box<[ContainerStatusView]>,
}

/// A container of the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerView {
    /// Name.
    pub name: Box<str>,
    /// Image as written.
    pub image: Box<str>,
    /// Launch priority, from the barrier variable; the highest starts first.
    pub priority: Option<i64>,
    /// CPU and memory of its specification; none if it has neither.
    pub resources: Option<Box<AmountsView>>,
    /// Which of these amounts this program wrote last by `resize`.
    pub written: WrittenView,
}

/// Phase of a pod, in the order in which surplus pods are deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not started, or a phase this build does not know.
    #[default]
    Pending,
    /// `Unknown`: the node does not report.
    Unknown,
    /// Running.
    Running,
    /// All containers ended with exit code 0.
    Succeeded,
    /// A container failed.
    Failed,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truth {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`, empty or anything else.
    #[default]
    Unknown,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConditionView {
    /// Type.
    pub kind: Box<str>,
    /// Status.
    pub status: Truth,
    /// When the status last changed.
    pub since: Option<Timestamp>,
    /// Reason; empty when absent.
    pub reason: Box<str>,
    /// Message; empty when absent.
    pub message: Box<str>,
}

/// The state of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireContainerStatus")]
pub struct ContainerStatusView {
    /// Name.
    pub name: Box<str>,
    /// Image as the runtime reports it.
    pub image: Box<str>,
    /// Digest or id of the image that runs.
    pub image_id: Box<str>,
    /// Id of the running container.
    pub container_id: Box<str>,
    /// Passing its readiness probe?
    pub ready: bool,
    /// Restarts so far.
    pub restart_count: i32,
    /// Has it ended, or is it waiting to start?
    pub between_runs: bool,
    /// Has it ended with exit code 0?
    pub succeeded: bool,
    /// Is it waiting because a ConfigMap or Secret that it names is missing (`CreateContainerConfigError`)?
    pub unconfigured: bool,
    /// CPU and memory that its node reports; none if the node does not report them.
    pub resources: Option<Box<AmountsView>>,
}

impl ContainerStatusView {
    /// Id of the running container; empty if none runs, because the next one gets a new id whatever image it runs.
    pub fn running_id(&self) -> &str {
        if self.between_runs { "" } else { &self.container_id }
    }
}

impl PodView {
    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&ConditionView> {
        self.conditions.iter().find(|condition| &*condition.kind == kind)
    }

    /// Is the condition present and True?
    pub fn is_true(&self, kind: &str) -> bool {
        self.condition(kind)
            .is_some_and(|condition| condition.status == Truth::True)
    }

    /// Is this condition type among the readiness gates?
    pub fn has_gate(&self, kind: &str) -> bool {
        self.gates.iter().any(|gate| &**gate == kind)
    }

    /// Neither ended nor being deleted.
    pub fn is_active(&self) -> bool {
        !self.deleting && !matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// The state of a container.
    pub fn status_of(&self, container: &str) -> Option<&ContainerStatusView> {
        self.statuses.iter().find(|status| &*status.name == container)
    }

    /// The image of a container.
    pub fn image_of(&self, container: &str) -> Option<&str> {
        self.containers
            .iter()
            .find(|have| &*have.name == container)
            .map(|have| &*have.image)
    }

    /// CPU and memory in the specification of a container.
    pub fn resources_of(&self, container: &str) -> Option<&AmountsView> {
        let found = self.containers.iter().find(|have| &*have.name == container);
        found.and_then(|found| found.resources.as_deref())
    }
}

kube_cache::cached!(PodView; deleting);

fn is_read(annotation: &str) -> bool {
    annotation == names::DELETION_COST
        || annotation == names::INPLACE_STATE_LEGACY
        || annotation == names::INPLACE_GRACE_LEGACY
        || annotation == names::INPLACE_STATE
        || annotation == names::INPLACE_GRACE
        || annotation == names::RUNTIME_CONTAINERS_META
        || annotation == names::LIFECYCLE_TIMESTAMP
        || annotation == names::LAUNCH_COMPLETED
}

impl<'de> Deserialize<'de> for PodView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Wire::deserialize(deserializer).map(Self::from)
    }
}

/// The JSON of the server.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: WireMeta,
    spec: WireSpec,
    status: WireStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireMeta {
    name: Box<str>,
    namespace: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    labels: Labels,
    annotations: Labels,
    finalizers: Option<Box<[Box<str>]>>,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    owner_references: Option<Vec<OwnerReference>>,
    managed_fields: Option<Vec<written::Entry>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSpec {
    node_name: Option<Box<str>>,
    restart_policy: Option<Box<str>>,
    readiness_gates: Option<Vec<WireGate>>,
    containers: Option<Vec<WireContainer>>,
    init_containers: Option<Vec<WireInit>>,
    volumes: Option<Vec<WireVolume>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireVolume {
    persistent_volume_claim: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireInit {
    name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireContainer {
    name: Box<str>,
    image: Box<str>,
    env: Option<Vec<WireVariable>>,
    #[serde(deserialize_with = "amounts::boxed")]
    resources: Option<Box<AmountsView>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireVariable {
    name: Box<str>,
    value_from: Option<WireSource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSource {
    config_map_key_ref: Option<WireKey>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireKey {
    key: Box<str>,
}

impl From<WireContainer> for ContainerView {
    fn from(wire: WireContainer) -> Self {
        let barrier = wire
            .env
            .into_iter()
            .flatten()
            .find(|variable| &*variable.name == names::LAUNCH_BARRIER_VARIABLE);
        let key = barrier.and_then(|variable| variable.value_from?.config_map_key_ref);
        Self {
            name: wire.name,
            image: wire.image,
            priority: key.and_then(|key| key.key.strip_prefix("p_")?.parse().ok()),
            resources: wire.resources,
            written: WrittenView::default(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireGate {
    condition_type: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireStatus {
    phase: Option<Box<str>>,
    conditions: Option<Vec<WireCondition>>,
    container_statuses: Option<Box<[ContainerStatusView]>>,
    /// `status.resize`: servers before 1.33 report here what newer ones report in conditions.
    resize: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCondition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    last_transition_time: Option<Timestamp>,
    reason: Option<Box<str>>,
    message: Option<Box<str>>,
}

impl From<Wire> for PodView {
    fn from(wire: Wire) -> Self {
        let Wire {
            metadata,
            spec,
            status,
        } = wire;
        let is_injected = metadata
            .annotations
            .get(names::sidecarset::INJECTED_LIST)
            .is_some();
        let written = written::by_container(metadata.managed_fields.unwrap_or_default());
        let container = |wire| {
            let mut container = ContainerView::from(wire);
            container.written = written.get(&container.name).copied().unwrap_or_default();
            container
        };
        let inits = spec.init_containers.filter(|_| is_injected).unwrap_or_default();
        let controller = metadata
            .owner_references
            .unwrap_or_default()
            .into_iter()
            .find(|owner| owner.controller);
        Self {
            controller: controller.as_ref().map(OwnerView::boxed),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: metadata.labels,
            annotations: metadata
                .annotations
                .filtered(|key| is_read(key) || (is_injected && key != names::LAST_APPLIED)),
            finalizers: metadata.finalizers.unwrap_or_default(),
            created: metadata.creation_timestamp,
            deleting: metadata.deletion_timestamp.is_some(),
            gone_by: metadata.deletion_timestamp,
            node: spec.node_name.filter(|node| !node.is_empty()),
            gates: spec
                .readiness_gates
                .unwrap_or_default()
                .into_iter()
                .map(|gate| gate.condition_type)
                .collect(),
            init_containers: inits.into_iter().map(|init| init.name).collect(),
            containers: spec
                .containers
                .unwrap_or_default()
                .into_iter()
                .map(container)
                .collect(),
            restarts_always: !matches!(spec.restart_policy.as_deref(), Some("OnFailure" | "Never")),
            has_claims: spec
                .volumes
                .unwrap_or_default()
                .iter()
                .any(|volume| volume.persistent_volume_claim.is_some()),
            phase: match status.phase.as_deref() {
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                Some("Unknown") => Phase::Unknown,
                _ => Phase::Pending,
            },
            conditions: status
                .conditions
                .unwrap_or_default()
                .into_iter()
                .map(ConditionView::from)
                .chain(status.resize.and_then(pending))
                .collect(),
            statuses: status.container_statuses.unwrap_or_default(),
        }
    }
}

/// The condition by which newer servers report that a resize waits for its node.
fn pending(resize: Box<str>) -> Option<ConditionView> {
    matches!(&*resize, "Deferred" | "Infeasible").then(|| ConditionView {
        kind: names::POD_RESIZE_PENDING.into(),
        status: Truth::True,
        reason: resize,
        ..ConditionView::default()
    })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireContainerStatus {
    name: Box<str>,
    image: Box<str>,
    #[serde(rename = "imageID")]
    image_id: Box<str>,
    #[serde(rename = "containerID")]
    container_id: Box<str>,
    ready: bool,
    restart_count: i32,
    state: Option<WireState>,
    #[serde(deserialize_with = "amounts::boxed")]
    resources: Option<Box<AmountsView>>,
}

/// State of a container, reduced to the flags of [`ContainerStatusView`].
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireState {
    waiting: Option<WireWaiting>,
    terminated: Option<WireTerminated>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireWaiting {
    reason: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTerminated {
    exit_code: Option<i32>,
}

impl From<WireContainerStatus> for ContainerStatusView {
    fn from(wire: WireContainerStatus) -> Self {
        let WireState { waiting, terminated } = wire.state.unwrap_or_default();
        let reason = waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
        Self {
            name: wire.name,
            image: wire.image,
            image_id: wire.image_id,
            container_id: wire.container_id,
            ready: wire.ready,
            restart_count: wire.restart_count,
            resources: wire.resources,
            unconfigured: reason == Some("CreateContainerConfigError"),
            between_runs: waiting.is_some() || terminated.is_some(),
            succeeded: terminated.is_some_and(|ended| ended.exit_code == Some(0)),
        }
    }
}

impl From<WireCondition> for ConditionView {
    fn from(wire: WireCondition) -> Self {
        Self {
            kind: wire.kind,
            status: match &*wire.status {
                "True" => Truth::True,
                "False" => Truth::False,
                _ => Truth::Unknown,
            },
            since: wire.last_transition_time,
            reason: wire.reason.unwrap_or_default(),
            message: wire.message.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ContainerStatusView, Phase, PodView, Truth};

    #[test]
    fn a_pod_with_null_everywhere_is_a_pending_pod() {
        let pod: PodView = serde_json::from_str(
            r#"{"metadata":{"name":"a","labels":null,"annotations":null,"finalizers":null,"ownerReferences":null},
                "spec":{"nodeName":"","readinessGates":null,"containers":null},
                "status":{"phase":null,"conditions":null,"containerStatuses":null}}"#,
        )
        .unwrap();
        assert_eq!(
            (pod.phase, pod.node.is_some(), pod.is_active()),
            (Phase::Pending, false, true)
        );
    }

    #[test]
    fn a_waiting_resize_is_read_from_the_field_and_from_the_condition() {
        let condition = r#"{"status":{"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}]}}"#;
        for (status, reason) in [
            (condition, Some("Infeasible")),
            (r#"{"status":{"resize":"Deferred"}}"#, Some("Deferred")),
            (r#"{"status":{"resize":"InProgress"}}"#, None),
            (r#"{"status":{"resize":""}}"#, None),
        ] {
            let pod: PodView = serde_json::from_str(status).unwrap();
            let pending = pod.condition("PodResizePending");
            assert_eq!(pending.map(|pending| &*pending.reason), reason, "{status}");
        }
    }

    #[test]
    fn only_a_running_container_has_a_running_id() {
        for (state, id) in [
            (r#"{"running":{"startedAt":null}}"#, "cri://1"),
            ("{}", "cri://1"),
            ("null", "cri://1"),
            (r#"{"waiting":{"reason":"CrashLoopBackOff"}}"#, ""),
            (r#"{"terminated":{"exitCode":1}}"#, ""),
        ] {
            let text = format!(r#"{{"name":"c","containerID":"cri://1","state":{state}}}"#);
            let status: ContainerStatusView = serde_json::from_str(&text).unwrap();
            assert_eq!(status.running_id(), id, "{state}");
        }
    }

    #[test]
    fn ends_and_waits_are_read_from_the_container_state() {
        for (state, succeeded, unconfigured) in [
            (r#"{"running":{}}"#, false, false),
            ("null", false, false),
            (
                r#"{"waiting":{"reason":"CreateContainerConfigError","message":"m"}}"#,
                false,
                true,
            ),
            (r#"{"waiting":{"reason":"ImagePullBackOff"}}"#, false, false),
            (r#"{"waiting":{}}"#, false, false),
            (r#"{"terminated":{"exitCode":0}}"#, true, false),
            (r#"{"terminated":{"exitCode":1}}"#, false, false),
            (r#"{"terminated":{}}"#, false, false),
        ] {
            let text = format!(r#"{{"name":"c","state":{state}}}"#);
            let status: ContainerStatusView = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (status.succeeded, status.unconfigured),
                (succeeded, unconfigured),
                "{state}"
            );
        }
    }

    #[test]
    fn only_claims_are_read_from_volumes() {
        for (volumes, has) in [
            ("null", false),
            (
                r#"[{"name":"a","emptyDir":{}},{"name":"b","persistentVolumeClaim":null}]"#,
                false,
            ),
            (
                r#"[{"name":"a","emptyDir":{}},{"name":"b","persistentVolumeClaim":{"claimName":"c"}}]"#,
                true,
            ),
        ] {
            let text = format!(r#"{{"spec":{{"volumes":{volumes}}}}}"#);
            let pod: PodView = serde_json::from_str(&text).unwrap();
            assert_eq!(pod.has_claims, has, "{volumes}");
        }
    }

    #[test]
    fn the_restart_policy_defaults_to_always() {
        for (policy, always) in [
            ("\"Always\"", true),
            ("null", true),
            ("\"OnFailure\"", false),
            ("\"Never\"", false),
        ] {
            let text = format!(r#"{{"spec":{{"restartPolicy":{policy}}}}}"#);
            let pod: PodView = serde_json::from_str(&text).unwrap();
            assert_eq!(pod.restarts_always, always, "{policy}");
        }
    }

    #[test]
    fn every_field_a_planner_reads_is_decoded() {
        let pod: PodView = serde_json::from_str(
            r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{"l":"1"},
                "annotations":{"apps.kruise.io/inplace-update-state":"{}","note":"dropped"},"finalizers":["f"],
                "creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-01T00:00:01Z",
                "ownerReferences":[{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","name":"o","uid":"ou","controller":true}]},
                "spec":{"nodeName":"node","readinessGates":[{"conditionType":"G"}],"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]},
                "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:02Z"}],
                "containerStatuses":[{"name":"c","image":"i","imageID":"id","containerID":"cid","ready":true,"restartCount":3,"resources":{"limits":{"cpu":"2"}}}]}}"#,
        )
        .unwrap();
        assert_eq!(pod.resources_of("c").and_then(|c| c.cpu_request), Some(1000));
        let given = pod.status_of("c").and_then(|c| c.resources.as_deref());
        assert_eq!(given.and_then(|given| given.cpu_limit), Some(2000));
        assert_eq!(
            pod.controller.as_ref().map(|owner| (&*owner.group, &*owner.uid)),
            Some(("apps.kruise.io", "ou"))
        );
        assert_eq!(pod.annotations.len(), 1);
        assert!(pod.deleting && !pod.is_active() && pod.has_gate("G"));
        assert_eq!(
            pod.condition("Ready").map(|ready| ready.status),
            Some(Truth::True)
        );
        assert_eq!(
            pod.status_of("c")
                .map(|status| (&*status.image_id, status.restart_count)),
            Some(("id", 3))
        );
        assert_eq!(pod.image_of("c"), Some("i"));
    }

    #[test]
    fn pods_with_sidecars_keep_all_annotations_and_init_container_names() {
        let pod = |injected: &str| -> PodView {
            let text = format!(
                r#"{{"metadata":{{"annotations":{{"note":"n","kubectl.kubernetes.io/last-applied-configuration":"long"{injected}}}}},
                    "spec":{{"initContainers":[{{"name":"i","image":"x"}}]}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let injected = pod(r#","kruise.io/sidecarset-injected-list":"logs""#);
        assert_eq!(
            (injected.annotations.len(), injected.init_containers.len()),
            (2, 1)
        );
        let plain = pod("");
        assert_eq!((plain.annotations.len(), plain.init_containers.len()), (0, 0));
    }

    #[test]
    fn the_priority_is_read_from_the_barrier_variable_only() {
        for (variable, priority) in [
            (
                r#"{"name":"KRUISE_CONTAINER_BARRIER","valueFrom":{"configMapKeyRef":{"name":"x","key":"p_-3"}}}"#,
                Some(-3),
            ),
            (
                r#"{"name":"KRUISE_CONTAINER_BARRIER","valueFrom":{"configMapKeyRef":{"name":"x","key":"high"}}}"#,
                None,
            ),
            (r#"{"name":"KRUISE_CONTAINER_BARRIER","value":"p_3"}"#, None),
            (
                r#"{"name":"KRUISE_CONTAINER_BARRIER","valueFrom":{"fieldRef":{"fieldPath":"p_3"}}}"#,
                None,
            ),
            (
                r#"{"name":"OTHER","valueFrom":{"configMapKeyRef":{"name":"x","key":"p_3"}}}"#,
                None,
            ),
        ] {
            let pod = format!(r#"{{"spec":{{"containers":[{{"name":"c","env":[{variable}]}}]}}}}"#);
            let pod: PodView = serde_json::from_str(&pod).unwrap();
            assert_eq!(pod.containers[0].priority, priority, "{variable}");
        }
    }
}
