//! What planners read of a pod.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    AmountsView, AnnotationPrints, Labels, OwnerView, WrittenView,
    environment::{MetadataMap, MetadataVariable},
};

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
    /// Annotations that planners or environments of containers read. Pods with injected sidecars keep all of them,
    /// because a SidecarSet may patch any.
    pub annotations: Labels,
    /// Which annotations it has, all of them but that of kubectl.
    pub annotation_prints: AnnotationPrints,
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
    /// The only node that its affinity allows, by name. Only known while it is bound to none.
    pub pinned: Option<Box<str>>,
    /// Condition types in `spec.readinessGates`.
    pub gates: Box<[Box<str>]>,
    /// Names of the secrets that its images are pulled with, in order. A service account may have added them.
    pub pull_secrets: Box<[Box<str>]>,
    /// Names of the init containers, in order; empty for pods without injected sidecars.
    pub init_containers: Box<[Box<str>]>,
    /// Regular containers in order.
    pub containers: Box<[ContainerView]>,
    /// Is `restartPolicy` `Always`?
    pub restarts_always: bool,
    /// What only its BroadcastJob reads; none for pods of others.
    pub broadcast: Option<Box<BroadcastView>>,
    /// What only the SidecarTerminator reads; none for pods without marked sidecars.
    pub marked: Option<Box<MarkedView>>,
    /// Its volumes that are persistent volume claims, in order.
    pub claims: Box<[ClaimVolume]>,
    /// Ephemeral containers in order.
    pub ephemeral: Box<[EphemeralView]>,
    /// Phase.
    pub phase: Phase,
    /// Its address; empty until it has one.
    pub ip: Box<str>,
    /// Conditions.
    pub conditions: Box<[ConditionView]>,
    /// States of the regular containers.
    pub statuses: Box<[ContainerStatusView]>,
    /// States of the init containers that run as long as the pod: those whose `restartPolicy` is `Always`.
    pub sidecars: Box<[ContainerStatusView]>,
    /// Is its status older than its specification? Known only of nodes that report the generation that they have seen:
    /// kubelets from 1.34.
    pub unobserved: bool,
    /// From when on `ready` and `Ready` are believed. Kubelets 1.35 to 1.37 report of a container that began anew
    /// what they knew of the one before, until its startup probe has run for the first time. None if that cannot be
    /// so.
    pub trusted_at: Option<Timestamp>,
}

/// A volume that is a persistent volume claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimVolume {
    /// Name of the volume.
    pub volume: Box<str>,
    /// Name of the claim.
    pub claim: Box<str>,
}

/// What a BroadcastJob reads of its pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BroadcastView {
    /// What its own specification says about nodes, in the form of a template: `spec` with `nodeSelector`,
    /// `tolerations`, and the required node affinity unless that only pins it to its node.
    pub placement: Value,
    /// Restarts of its containers, those of init containers included, where `restartPolicy` is `OnFailure`.
    pub restarts: i32,
}

/// An ephemeral container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EphemeralView {
    /// Name.
    pub name: Box<str>,
    /// UID of the EphemeralJob that added it, from its environment; empty if none did.
    pub job: Box<str>,
    /// Its state.
    pub state: EphemeralState,
    /// Why it waits, or how it ended, as the node says; empty if it says nothing.
    pub reason: Box<str>,
}

/// The state of an ephemeral container, as its EphemeralJob counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EphemeralState {
    /// Its node has reported nothing yet, or an end without a time.
    #[default]
    Unknown,
    /// It has yet to start.
    Waiting,
    /// It runs.
    Running,
    /// It ended with exit code 0.
    Succeeded,
    /// It ended with this exit code, or cannot be run.
    Failed(Option<i32>),
}

impl EphemeralState {
    /// Has it come to its end?
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed(_))
    }
}

/// What only the SidecarTerminator reads of a pod with marked sidecars.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedView {
    /// The marked containers, in the order of the specification.
    pub sidecars: Box<[MarkedSidecar]>,
    /// Names of the containers that have ended and have not begun anew: those in the state `terminated`.
    pub ended: Box<[Box<str>]>,
    /// Is `restartPolicy` `Never`?
    pub is_never_restarted: bool,
}

/// A marked container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedSidecar {
    /// Name.
    pub name: Box<str>,
    /// Is it to be stopped by a request to the agent of its node?
    pub by_request: bool,
    /// The image, of a program that ends at once, that it gets on a virtual node; empty if none is named.
    pub image: Box<str>,
    /// Does its exit code not count for the phase of the pod?
    pub ignores_exit_code: bool,
}

impl MarkedView {
    /// Has this container ended?
    pub fn has_ended(&self, container: &str) -> bool {
        self.ended.iter().any(|name| **name == *container)
    }

    /// Is this container a sidecar?
    pub fn is_sidecar(&self, container: &str) -> bool {
        self.sidecars.iter().any(|one| *one.name == *container)
    }
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
    /// Environment variables that read a label or an annotation of the pod.
    pub variables: Box<[MetadataVariable]>,
    /// Its ports that have a name.
    pub ports: Box<[PortView]>,
    /// What kubelets before 1.31 report as its hash. Only known while it is waited for: of a pod that is being
    /// updated in place and that a node agent reports on.
    pub whole_hash: Option<u32>,
}

/// A named port of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortView {
    /// Name.
    pub name: Box<str>,
    /// Number.
    pub number: u16,
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
#[serde(from = "super::wire::ContainerStatus")]
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
    /// When the container that runs began; none if none runs.
    pub running_since: Option<Timestamp>,
    /// Has it ended, or is it waiting to start?
    pub between_runs: bool,
    /// Has it ended with exit code 0?
    pub succeeded: bool,
    /// Is it waiting because a ConfigMap or Secret that it names is missing (`CreateContainerConfigError`)?
    pub unconfigured: bool,
    /// Is it waiting for more than its start: an image that cannot be had, a configuration that cannot be read, or
    /// the next attempt of a container that ends again and again?
    pub failing: bool,
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
    /// The node that it is bound to, or the only one that it can be bound to.
    pub fn assigned_node(&self) -> Option<&str> {
        self.node.as_deref().or(self.pinned.as_deref())
    }

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

    /// The state of a container that runs as long as the pod: a regular one, or an init container that does.
    pub fn lasting_status_of(&self, container: &str) -> Option<&ContainerStatusView> {
        let mut sidecars = self.sidecars.iter();
        self.status_of(container)
            .or_else(|| sidecars.find(|status| &*status.name == container))
    }

    /// The image of a container.
    pub fn image_of(&self, container: &str) -> Option<&str> {
        self.containers
            .iter()
            .find(|have| &*have.name == container)
            .map(|have| &*have.image)
    }

    /// The number of a named port of a container.
    pub fn port_of(&self, container: &str, name: &str) -> Option<u16> {
        let mut containers = self.containers.iter();
        let container = containers.find(|have| &*have.name == container)?;
        let port = container.ports.iter().find(|port| &*port.name == name)?;
        Some(port.number)
    }

    /// What a container that begins now reads in a variable; empty if the pod has no such label or annotation.
    pub fn value_of(&self, variable: &MetadataVariable) -> &str {
        let map = match variable.map {
            MetadataMap::Labels => &self.labels,
            MetadataMap::Annotations => &self.annotations,
        };
        map.get(&variable.key).unwrap_or_default()
    }

    /// CPU and memory in the specification of a container.
    pub fn resources_of(&self, container: &str) -> Option<&AmountsView> {
        let found = self.containers.iter().find(|have| &*have.name == container);
        found.and_then(|found| found.resources.as_deref())
    }
}

kube_cache::cached!(PodView; deleting);
