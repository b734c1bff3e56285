//! PersistentPodStates that the annotations of workloads ask for.
//!
//! A generated object is one that a workload of its name controls by a reference that does not block the workload's
//! deletion, and that is for this workload. OpenKruise writes such references, and libraries for controllers write
//! others. Nothing else is ever changed or deleted.

use kruise_api::{
    meta::OwnerReference,
    names::persistentpodstate::{ANNOTATIONS, PREFERRED, REQUIRED},
    persistentpodstate::{
        KIND, NodeTopology, PersistentPodAnnotation, PersistentPodState, PersistentPodStateSpec,
        PreferredTopology,
    },
    podunavailablebudget::TargetRef,
};
use kruise_plan_kit::{
    Body, FailureNote, Intent, ObjectWrites, Part, Patch, Phase, Plan, Precondition, Step, Target, Why,
    Write, injected::is_injected,
};
use serde_json::{Map, Value, json};

use super::reasons;
use super::{
    events,
    snapshot::{Generator, Snapshot},
};

/// A workload whose annotations ask for it gets an object that records where its pods are.
const CREATE_POD_STATE: Intent = Intent::of_update("create-pod-state");
/// Such an object becomes what the annotations say.
const UPDATE_POD_STATE: Intent = Intent::of_update("update-pod-state");
/// Such an object is deleted: the annotations ask for none any more.
const DELETE_POD_STATE: Intent = Intent::of_update("delete-pod-state");

/// Weight of the labels of a generated object.
const WEIGHT: i32 = 100;

/// Adds the write that the annotations of the workloads of this name ask for.
pub(super) fn generate(snapshot: &Snapshot<'_>, plan: &mut Plan) {
    let mut generators: Vec<&Generator> = snapshot
        .generators
        .iter()
        .filter(|generator| !generator.view.deleting)
        .collect();
    generators.sort_by(|a, b| a.workload.cmp(&b.workload));
    match snapshot.state {
        None => create(snapshot, &generators, plan),
        Some(state) if state.metadata.deletion_timestamp.is_some() => {}
        Some(state) => match generators.iter().find(|one| is_generated(state, one)) {
            Some(generator) => {
                keep(state, generator, plan);
                refuse(state, generators.iter().filter(|one| one != &generator), plan);
            }
            None => refuse(state, generators.iter(), plan),
        },
    }
}

/// Was the object generated for this workload?
fn is_generated(state: &PersistentPodState, generator: &Generator) -> bool {
    let is_of = |owner: &OwnerReference| *owner.uid == *generator.view.uid && !owner.block_owner_deletion;
    let target = &state.spec.target_ref;
    let Generator { workload, .. } = generator;
    if is_injected("ForeignStateTaken") {
        return true;
    }
    state.metadata.controller().is_some_and(is_of)
        && target.names(&workload.group, &workload.kind, &workload.name)
}

/// There is none: the first workload that asks for one gets it.
fn create(snapshot: &Snapshot<'_>, generators: &[&Generator], plan: &mut Plan) {
    let mut asking = generators.iter().filter(|generator| is_asking(generator));
    let Some(first) = asking.next() else {
        return;
    };
    for other in asking {
        let why = format!("the {} of this name gets one", first.workload.group);
        plan.events.push(events::not_generated(other, &why));
    }
    if let Some(other) = &first.other {
        let why = format!("PersistentPodState {other} is for this workload");
        plan.why.push(Why::of_set(why.clone()));
        plan.events.push(events::not_generated(first, &why));
        return;
    }
    let object = json!({
        "apiVersion": format!("{}/{}", KIND.group, kruise_api::convert::NEWER),
        "kind": KIND.kind,
        "metadata": {"name": snapshot.name, "namespace": snapshot.namespace, "ownerReferences": [{
            "apiVersion": first.api_version,
            "kind": first.workload.kind,
            "name": first.workload.name,
            "uid": first.view.uid,
            "controller": true,
        }]},
        "spec": desired(first),
    });
    let write = Write::Create {
        intent: CREATE_POD_STATE,
        target: target(snapshot.namespace, snapshot.name),
        body: Body::from(object),
        owner_uid: Some(first.view.uid.to_string()),
    };
    let reason = "the annotations of the workload ask for it";
    plan.writes.push(step(first, write, "created", reason));
}

/// The workload's own: it follows the annotations.
fn keep(state: &PersistentPodState, generator: &Generator, plan: &mut Plan) {
    let metadata = &state.metadata;
    let unchanged = || Precondition::UidAndVersion(metadata.uid.clone(), metadata.resource_version.clone());
    let target = target(&metadata.namespace, &metadata.name);
    if !generator.is_enabled() {
        let write = Write::Delete {
            intent: DELETE_POD_STATE,
            target,
            precondition: unchanged(),
        };
        let reason = "the annotations of the workload do not ask for it any more";
        plan.writes.push(step(generator, write, "deleted", reason));
        return;
    }
    if !generator.has_topology() {
        return;
    }
    let changes = changes(&state.spec, &desired(generator));
    if changes.is_empty() {
        return;
    }
    let write = Write::Patch {
        intent: UPDATE_POD_STATE,
        target,
        part: Part::Main,
        patch: Patch::Merge(json!({"spec": changes})),
        precondition: unchanged(),
    };
    let reason = "the annotations of the workload say otherwise";
    plan.writes.push(step(generator, write, "changed", reason));
}

/// Somebody else's: it stays, and workloads that ask for another one are told.
fn refuse<'g>(
    state: &PersistentPodState,
    generators: impl Iterator<Item = &'g &'g Generator>,
    plan: &mut Plan,
) {
    for generator in generators.filter(|generator| is_asking(generator)) {
        let wanted = desired(generator);
        let (have, want) = (&state.spec.target_ref, &wanted.target_ref);
        let is_same = have.names(want.group(), &want.kind, &want.name);
        // Of an earlier workload of this name, it is about to be deleted. What says the same serves as well.
        let owner = state.metadata.controller();
        let is_predecessors =
            is_same && owner.is_some_and(|owner| owner.kind == want.kind && owner.name == want.name);
        if is_predecessors || (is_same && changes(&state.spec, &wanted).is_empty()) {
            continue;
        }
        let why =
            "the PersistentPodState of this name is not controlled by this workload, and stays as it is";
        plan.why.push(Why::of_set(why));
        plan.events.push(events::not_generated(generator, why));
    }
}

fn is_asking(generator: &Generator) -> bool {
    generator.is_enabled() && generator.has_topology()
}

/// What the annotations say. Keys are not trimmed: OpenKruise does not.
fn desired(generator: &Generator) -> PersistentPodStateSpec {
    let keys = |annotation: &str| {
        let text = generator.annotation(annotation);
        let keys = (!text.is_empty()).then(|| text.split(',').map(str::to_owned).collect::<Vec<_>>());
        keys.unwrap_or_default()
    };
    let (required, preferred) = (keys(REQUIRED), keys(PREFERRED));
    let topology = |keys: Vec<String>| (!keys.is_empty()).then_some(NodeTopology { keys });
    let preferred = topology(preferred).map(|preference| PreferredTopology {
        weight: WEIGHT,
        preference,
    });
    PersistentPodStateSpec {
        target_ref: TargetRef {
            api_version: generator.api_version.clone(),
            kind: generator.workload.kind.clone(),
            name: generator.workload.name.clone(),
        },
        persistent_pod_annotations: keys(ANNOTATIONS)
            .into_iter()
            .map(|key| PersistentPodAnnotation { key })
            .collect(),
        required_persistent_topology: topology(required),
        preferred_persistent_topology: preferred.into_iter().collect(),
        persistent_pod_state_retention_policy: String::new(),
    }
}

/// The members of a merge patch that makes the stored specification what is desired. The target is the same, and
/// its version stays; annotations say nothing of the retention policy, which is the user's.
fn changes(stored: &PersistentPodStateSpec, desired: &PersistentPodStateSpec) -> Map<String, Value> {
    let members = |spec: &PersistentPodStateSpec| {
        let mut spec = spec.clone();
        spec.target_ref = TargetRef::default();
        spec.persistent_pod_state_retention_policy.clear();
        match serde_json::to_value(spec) {
            Ok(Value::Object(members)) => members,
            _ => Map::new(),
        }
    };
    let (stored, desired) = (members(stored), members(desired));
    let gone = stored.keys().filter(|key| !desired.contains_key(*key));
    let mut changes: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    let differs = |(key, value): &(&String, &Value)| stored.get(*key) != Some(*value);
    let different = desired.iter().filter(differs);
    changes.extend(different.map(|(key, value)| (key.clone(), value.clone())));
    changes
}

fn target(namespace: &str, name: &str) -> Target {
    Target {
        resource: kruise_api::persistentpodstate::RESOURCE,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn step(generator: &Generator, write: Write, what: &str, reason: &str) -> ObjectWrites {
    let name = &generator.workload.name;
    let prefix = format!("PersistentPodState {name} cannot be {what}: ");
    let mut step = Step::new(write, reason);
    step.done = Some(events::generated(generator, what));
    step.failed = Some(FailureNote::new(&reasons::POD_STATE_NOT_GENERATED, prefix));
    ObjectWrites::new(Phase::Pods, vec![step])
}
