//! A pod as the server writes it.

use std::fmt;

use jiff::Timestamp;
use kruise_api::{meta::OwnerReference, names};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use super::{
    BroadcastView, ClaimVolume, ConditionView, ContainerStatusView, ContainerView, MarkedSidecar, Phase,
    PodView, PortView, Truth, report,
};
use super::{broadcast, ephemeral, marked};
use crate::{
    AmountsView, AnnotationPrints, Labels, OwnerView, WrittenView, amounts,
    environment::{MetadataMap, MetadataVariable},
    written,
};

fn is_read(annotation: &str) -> bool {
    annotation == names::DELETION_COST
        || annotation == names::INPLACE_STATE_LEGACY
        || annotation == names::INPLACE_GRACE_LEGACY
        || annotation == names::INPLACE_STATE
        || annotation == names::INPLACE_GRACE
        || annotation == names::RUNTIME_CONTAINERS_META
        || annotation == names::LIFECYCLE_TIMESTAMP
        || annotation == names::LAUNCH_COMPLETED
        || annotation == names::podunavailablebudget::RELATED
        || annotation == names::podunavailablebudget::RELATED_LEGACY
        || annotation == names::podunavailablebudget::NO_PROTECT
        || annotation == names::workloadspread::MATCHED
}

impl<'de> Deserialize<'de> for PodView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::deserialize(deserializer).map(Self::from)
    }
}

/// The JSON of the server.
#[derive(Default)]
struct Object {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Metadata,
    Spec,
    Status,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pod")
            }

            // The server writes the metadata first. They say whether more of the specification is needed than is
            // kept of it.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut object = Object::default();
                while let Some(member) = map.next_key()? {
                    match member {
                        Member::Metadata => object.metadata = map.next_value()?,
                        Member::Spec if object.metadata.awaits_hashes() => {
                            object.spec = Spec::with_hashes(&map.next_value()?).map_err(A::Error::custom)?;
                        }
                        Member::Spec if object.metadata.is_broadcast() => {
                            object.spec =
                                Spec::with_placement(&map.next_value()?).map_err(A::Error::custom)?;
                        }
                        Member::Spec => object.spec = map.next_value()?,
                        Member::Status => object.status = map.next_value()?,
                        Member::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl Metadata {
    /// May hashes of whole containers complete an update of this pod?
    fn awaits_hashes(&self) -> bool {
        let has = |annotation: &str| self.annotations.get(annotation).is_some();
        let state = self.labels.get(names::LIFECYCLE_STATE);
        has(names::RUNTIME_CONTAINERS_META)
            && (has(names::INPLACE_STATE) || has(names::INPLACE_STATE_LEGACY))
            && state.is_none_or(|state| state == "Updating")
    }
}

impl Metadata {
    /// Does a BroadcastJob control it?
    fn is_broadcast(&self) -> bool {
        let mut owners = self.owner_references.iter().flatten();
        owners.any(|owner| {
            owner.controller && owner.kind == "BroadcastJob" && owner.group() == names::APPS_GROUP
        })
    }
}

impl Spec {
    fn with_placement(spec: &Value) -> Result<Self, serde_json::Error> {
        let mut read = Self::deserialize(spec)?;
        read.placement = Some(broadcast::placement(spec));
        Ok(read)
    }

    fn with_hashes(spec: &Value) -> Result<Self, serde_json::Error> {
        let mut read = Self::deserialize(spec)?;
        let containers = spec.get("containers").and_then(Value::as_array);
        let containers = containers.into_iter().flatten();
        for (read, container) in read.containers.iter_mut().flatten().zip(containers) {
            read.whole_hash = u32::try_from(go_compat::container::whole_hash(container)).ok();
        }
        Ok(read)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Box<str>,
    namespace: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    generation: i64,
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
struct Spec {
    node_name: Option<Box<str>>,
    affinity: Option<Affinity>,
    restart_policy: Option<Box<str>>,
    readiness_gates: Option<Vec<Gate>>,
    image_pull_secrets: Option<Vec<SecretReference>>,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Init>>,
    volumes: Option<Vec<Volume>>,
    ephemeral_containers: Option<Vec<ephemeral::Container>>,
    /// What it says about nodes. Not of the server.
    #[serde(skip)]
    placement: Option<Value>,
}

/// Only what pins a pod to one node.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    node_selector_terms: Option<Vec<Term>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    match_fields: Option<Vec<Requirement>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: Box<str>,
    operator: Box<str>,
    values: Option<Vec<Box<str>>>,
}

impl Affinity {
    /// The node that a term about the name of a node allows, if it allows one.
    fn pinned(self) -> Option<Box<str>> {
        let required = self
            .node_affinity?
            .required_during_scheduling_ignored_during_execution?;
        let terms = required.node_selector_terms.into_iter().flatten();
        let fields = terms.filter_map(|term| term.match_fields).flatten();
        let mut names = fields.filter(|field| &*field.key == "metadata.name" && &*field.operator == "In");
        let mut values = names.next()?.values?;
        values.pop().filter(|_| values.is_empty())
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: Box<str>,
    persistent_volume_claim: Option<Claim>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Claim {
    claim_name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Init {
    name: Box<str>,
    restart_policy: Option<Box<str>>,
}

impl Init {
    /// Does it run as long as the pod?
    fn lasts(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    pub(super) name: Box<str>,
    image: Box<str>,
    env: Option<Vec<Variable>>,
    ports: Option<Vec<Port>>,
    #[serde(deserialize_with = "amounts::boxed")]
    resources: Option<Box<AmountsView>>,
    pub(super) startup_probe: Option<Probe>,
    /// Not of the server.
    #[serde(skip)]
    whole_hash: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Port {
    name: Option<Box<str>>,
    container_port: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Probe {
    pub(super) period_seconds: Option<i64>,
}

/// A variable. Its value is kept only if it may be one that marks a sidecar.
#[derive(Default)]
struct Variable {
    name: Box<str>,
    value: Option<Box<str>>,
    value_from: Option<Source>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum VariableMember {
    Name,
    Value,
    ValueFrom,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Variable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an environment variable")
            }

            // The server writes the name first. It says whether the value is needed.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Variable, A::Error> {
                let mut variable = Variable::default();
                let mut name = None;
                while let Some(member) = map.next_key()? {
                    let is_mark = name.as_deref().is_none_or(marked::is_mark);
                    match member {
                        VariableMember::Name => name = Some(map.next_value::<Box<str>>()?),
                        VariableMember::Value if is_mark => variable.value = map.next_value()?,
                        VariableMember::ValueFrom => variable.value_from = map.next_value()?,
                        VariableMember::Value | VariableMember::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                variable.name = name.unwrap_or_default();
                Ok(variable)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The variables of a container that may mark it, with their values.
pub(super) type Marks = [(Box<str>, Box<str>)];

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    config_map_key_ref: Option<Key>,
    field_ref: Option<Field>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Field {
    field_path: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Key {
    key: Box<str>,
}

impl Port {
    fn named(self) -> Option<PortView> {
        let number = self.container_port.and_then(|number| u16::try_from(number).ok());
        let (name, number) = (self.name?, number?);
        Some(PortView { name, number })
    }
}

impl Container {
    /// Takes out the variables that may mark a sidecar; what they say of it.
    fn marked(&mut self) -> Option<MarkedSidecar> {
        let variables = self.env.iter_mut().flatten();
        let marks = variables.filter(|variable| marked::is_mark(&variable.name));
        let marks: Vec<(Box<str>, Box<str>)> = marks
            .map(|variable| (variable.name.clone(), variable.value.take().unwrap_or_default()))
            .collect();
        if marks.is_empty() {
            return None;
        }
        marked::sidecar(&self.name, &marks)
    }
}

impl From<Container> for ContainerView {
    fn from(wire: Container) -> Self {
        let (mut barrier, mut variables) = (None, Vec::new());
        for Variable { name, value_from, .. } in wire.env.into_iter().flatten() {
            let source = value_from.unwrap_or_default();
            if let Some(field) = source.field_ref {
                variables.extend(MetadataVariable::of(&name, &field.field_path));
            }
            if &*name == names::LAUNCH_BARRIER_VARIABLE && barrier.is_none() {
                barrier = Some(source.config_map_key_ref);
            }
        }
        let key = barrier.flatten();
        Self {
            name: wire.name,
            image: wire.image,
            priority: key.and_then(|key| key.key.strip_prefix("p_")?.parse().ok()),
            resources: wire.resources,
            written: WrittenView::default(),
            variables: variables.into(),
            ports: wire.ports.into_iter().flatten().filter_map(Port::named).collect(),
            whole_hash: wire.whole_hash,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Gate {
    condition_type: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SecretReference {
    name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<Box<str>>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
    observed_generation: i64,
    conditions: Option<Vec<Condition>>,
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
    ephemeral_container_statuses: Option<Vec<ephemeral::Status>>,
    /// `status.resize`: servers before 1.33 report here what newer ones report in conditions.
    resize: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: Box<str>,
    pub(super) observed_generation: Option<i64>,
    status: Box<str>,
    last_transition_time: Option<Timestamp>,
    reason: Option<Box<str>>,
    message: Option<Box<str>>,
}

impl From<Object> for PodView {
    fn from(wire: Object) -> Self {
        let Object {
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
        let conditions = status.conditions.unwrap_or_default();
        let statuses = status.container_statuses.unwrap_or_default();
        let mut containers = spec.containers.unwrap_or_default();
        let marked = containers.iter_mut().filter_map(Container::marked).collect();
        let marked = marked::view(marked, &statuses, spec.restart_policy.as_deref());
        let init_statuses = status.init_container_statuses.unwrap_or_default();
        let restarts = restarts(spec.restart_policy.as_deref(), &init_statuses, &statuses);
        let ephemeral = ephemeral::views(spec.ephemeral_containers, status.ephemeral_container_statuses);
        let broadcast = spec
            .placement
            .map(|placement| Box::new(BroadcastView { placement, restarts }));
        let trusted_at = report::trusted_at(&conditions, &containers, &statuses);
        let unobserved =
            status.observed_generation < metadata.generation && report::reports_generations(&conditions);
        let containers: Box<[ContainerView]> = containers.into_iter().map(container).collect();
        let is_variable = |key: &str| {
            let mut variables = containers.iter().flat_map(|container| &container.variables);
            variables.any(|variable| variable.map == MetadataMap::Annotations && *variable.key == *key)
        };
        let is_kept =
            |key: &str| is_read(key) || (is_injected && key != names::LAST_APPLIED) || is_variable(key);
        let node = spec.node_name.filter(|node| !node.is_empty());
        let (init_containers, sidecars) = initial(spec.init_containers, init_statuses, is_injected);
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
            annotation_prints: AnnotationPrints::of(&metadata.annotations, |key| key == names::LAST_APPLIED),
            annotations: metadata.annotations.filtered(is_kept),
            finalizers: metadata.finalizers.unwrap_or_default(),
            created: metadata.creation_timestamp,
            deleting: metadata.deletion_timestamp.is_some(),
            gone_by: metadata.deletion_timestamp,
            pinned: if node.is_some() {
                None
            } else {
                spec.affinity.and_then(Affinity::pinned)
            },
            node,
            gates: spec
                .readiness_gates
                .unwrap_or_default()
                .into_iter()
                .map(|gate| gate.condition_type)
                .collect(),
            pull_secrets: named(spec.image_pull_secrets.unwrap_or_default()),
            init_containers,
            containers,
            broadcast,
            marked,
            restarts_always: !matches!(spec.restart_policy.as_deref(), Some("OnFailure" | "Never")),
            claims: claims(spec.volumes.unwrap_or_default()),
            ephemeral,
            phase: phase(status.phase.as_deref()),
            ip: status.pod_ip.unwrap_or_default(),
            conditions: conditions
                .into_iter()
                .map(ConditionView::from)
                .chain(status.resize.and_then(pending))
                .collect(),
            statuses: statuses.into_iter().map(ContainerStatusView::from).collect(),
            sidecars,
            unobserved,
            trusted_at,
        }
    }
}

/// The volumes that are claims, in order.
fn claims(volumes: Vec<Volume>) -> Box<[ClaimVolume]> {
    let claim = |volume: Volume| {
        let claim = volume.persistent_volume_claim?.claim_name;
        let volume = volume.name;
        Some(ClaimVolume { volume, claim })
    };
    volumes.into_iter().filter_map(claim).collect()
}

/// The names of secrets, in order. One without a name is none.
fn named(secrets: Vec<SecretReference>) -> Box<[Box<str>]> {
    let names = secrets.into_iter().map(|secret| secret.name);
    names.filter(|name| !name.is_empty()).collect()
}

/// Restarts of all containers, where those that fail are started again.
fn restarts(policy: Option<&str>, inits: &[ContainerStatus], regular: &[ContainerStatus]) -> i32 {
    if policy != Some("OnFailure") {
        return 0;
    }
    let counts = inits.iter().chain(regular).map(|one| one.restart_count);
    counts.fold(0, i32::saturating_add)
}

/// The names of the init containers, of pods with injected sidecars only, and the states of those that run as long
/// as the pod.
fn initial(
    inits: Option<Vec<Init>>,
    mut statuses: Vec<ContainerStatus>,
    is_injected: bool,
) -> (Box<[Box<str>]>, Box<[ContainerStatusView]>) {
    let inits = inits.unwrap_or_default();
    statuses.retain(|status| inits.iter().any(|init| init.lasts() && init.name == status.name));
    let names = inits.into_iter().filter(|_| is_injected).map(|init| init.name);
    let lasting = statuses.into_iter().map(ContainerStatusView::from);
    (names.collect(), lasting.collect())
}

fn phase(text: Option<&str>) -> Phase {
    match text {
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some("Unknown") => Phase::Unknown,
        _ => Phase::Pending,
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
pub(super) struct ContainerStatus {
    pub(super) name: Box<str>,
    image: Box<str>,
    #[serde(rename = "imageID")]
    image_id: Box<str>,
    #[serde(rename = "containerID")]
    container_id: Box<str>,
    pub(super) ready: bool,
    pub(super) restart_count: i32,
    state: Option<State>,
    #[serde(deserialize_with = "amounts::boxed")]
    resources: Option<Box<AmountsView>>,
}

/// State of a container, reduced to the flags of [`ContainerStatusView`].
#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    running: Option<Running>,
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Running {
    started_at: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    exit_code: Option<i32>,
}

impl ContainerStatus {
    /// When the container that runs began.
    pub(super) fn started_at(&self) -> Option<Timestamp> {
        self.state.as_ref()?.running.as_ref()?.started_at
    }

    /// Has it ended, without waiting to begin anew?
    pub(super) fn has_ended(&self) -> bool {
        self.state
            .as_ref()
            .is_some_and(|state| state.terminated.is_some())
    }
}

impl From<ContainerStatus> for ContainerStatusView {
    fn from(wire: ContainerStatus) -> Self {
        let running_since = wire.started_at();
        let State {
            waiting, terminated, ..
        } = wire.state.unwrap_or_default();
        let reason = waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
        Self {
            name: wire.name,
            image: wire.image,
            image_id: wire.image_id,
            container_id: wire.container_id,
            ready: wire.ready,
            restart_count: wire.restart_count,
            resources: wire.resources,
            running_since,
            failing: reason
                .is_some_and(|reason| !["", "ContainerCreating", "PodInitializing"].contains(&reason)),
            unconfigured: reason == Some("CreateContainerConfigError"),
            between_runs: waiting.is_some() || terminated.is_some(),
            succeeded: terminated.is_some_and(|ended| ended.exit_code == Some(0)),
        }
    }
}

impl From<Condition> for ConditionView {
    fn from(wire: Condition) -> Self {
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
