//! New pods.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::names::{
    IN_PLACE_UPDATE_READY, INSTANCE_ID, KRUISE_POD_READY, LIFECYCLE_STATE, LIFECYCLE_TIMESTAMP,
    POD_TEMPLATE_HASH, REVISION_HASH,
};
use kruise_plan_kit::{
    Body, Chain, FailureNote, Intent, Pace, ResourceId, Step, Target, Wave, Why, Write, events, instance,
    lifecycle::{State, go_time},
    put,
    revision::Revision,
};
use serde_json::{Map, Value, json};

use super::{
    claims::{self, Leaving, Places},
    history::Revisions,
    observe::Observed,
    volumes::Volumes,
    writes,
};

/// Most pods that one plan creates, about 5 MB of it: a slip of the pen in `replicas` must not cost the manager its
/// memory. The pods themselves bring the next plan.
const MOST: usize = 5000;

/// [`INSTANCE_ID`] as a JSON pointer.
pub(super) const INSTANCE_ID_POINTER: &str = "/metadata/labels/apps.kruise.io~1cloneset-instance-id";

/// New pods, or why they are not made yet.
#[derive(Default)]
pub(super) struct Created {
    pub(super) chains: Vec<Chain>,
    pub(super) why: Vec<Why>,
    /// When a place that is waited for is given up.
    pub(super) requeue: Option<Duration>,
}

/// Creates `count` pods, `old` of them on the current revision; of many only the first [`MOST`].
pub(super) fn create(
    observed: &Observed<'_>,
    revisions: &Revisions,
    count: usize,
    old: usize,
    now: Timestamp,
) -> Created {
    let count = count.min(MOST);
    let mut created = Created::default();
    let Places { free, leaving } = claims::places(observed, now);
    let (mut ids, open) = if observed.set.spec.scale_strategy.enable_pvc_reuse {
        let free: Vec<String> = free.into_iter().take(count).collect();
        created.wait_for(leaving.into_iter().take(count - free.len()));
        (free, Vec::new())
    } else {
        (Vec::new(), free)
    };
    let fresh = count.saturating_sub(ids.len() + created.why.len());
    let metadata = &observed.set.metadata;
    let used = used_ids(observed, &open);
    ids.extend(instance::ids(
        &metadata.uid,
        &metadata.resource_version,
        &used,
        fresh,
    ));
    ids.sort_unstable();
    let current = Arc::new(pod(observed, &revisions.current, now));
    let update = Arc::new(pod(observed, &revisions.update, now));
    let volumes = Volumes::new(observed);
    let chains = ids.into_iter().enumerate().map(|(index, id)| {
        let base = Arc::clone(if index < old { &current } else { &update });
        one(observed, &volumes, base, &id)
    });
    created.chains = chains.collect();
    created
}

impl Created {
    /// A pod that is still going keeps its place until it is gone: one line of explanation for each, and no pod.
    fn wait_for(&mut self, leaving: impl Iterator<Item = Leaving>) {
        for Leaving { pod, left } in leaving {
            let text = "is being deleted: the pod in its place takes its name and its claims, and waits until it is gone";
            self.why.push(Why {
                about: pod,
                text: text.into(),
            });
            self.requeue = Some(self.requeue.map_or(left, |soonest| soonest.min(left)));
        }
    }
}

/// Ids that a pod or a claim of this set, in any state, or somebody else's object holds, sorted. Not those of `open`:
/// their claims have no pod. If this very version of the set made them, an earlier attempt at the same plan got no
/// further, and they are drawn again, so that a pod that was made all the same meets itself.
fn used_ids<'a>(observed: &Observed<'a>, open: &[String]) -> Vec<&'a str> {
    let set = &observed.set.metadata.name;
    let of_name = |name: &'a str| claims::id_of(set, name);
    let mut used = Vec::with_capacity(observed.pods.len());
    for pod in observed.pods {
        let (label, name) = (pod.labels.get(INSTANCE_ID), of_name(&pod.name));
        used.extend(label);
        used.extend(name.filter(|_| name != label));
    }
    used.extend(
        observed
            .memory
            .taken_names
            .iter()
            .filter_map(|name| claims::last_part(name)),
    );
    let is_open = |id: &&str| open.binary_search_by(|open| open.as_str().cmp(id)).is_ok();
    used.extend(observed.claims.ids().filter(|id| !is_open(id)));
    used.sort_unstable();
    used
}

/// A pod, and before it the claims that it mounts.
fn one(observed: &Observed<'_>, volumes: &Volumes<'_, '_>, base: Arc<Value>, id: &str) -> Chain {
    let metadata = &observed.set.metadata;
    let name = format!("{}-{id}", metadata.name);
    let mut set = vec![
        ("/metadata/name", name.as_str().into()),
        (INSTANCE_ID_POINTER, id.into()),
    ];
    let of_pod = volumes.of_pod(id, base.pointer("/spec/volumes"));
    set.extend(of_pod.map(|volumes| ("/spec/volumes", volumes)));
    let body = Body { base, set };
    let target = Target {
        resource: ResourceId::PODS,
        namespace: metadata.namespace.clone(),
        name: name.clone(),
    };
    let write = Write::Create {
        intent: Intent::CreatePod,
        target,
        body,
        owner_uid: metadata.uid.clone(),
    };
    let step = Step {
        write,
        reason: "replicas are missing".into(),
        done: Some(writes::event(
            &events::SUCCESSFUL_CREATE,
            format!("succeed to create pod {name}"),
        )),
        failed: Some(FailureNote {
            reason: &events::FAILED_CREATE,
            prefix: "failed to create pod: ".into(),
            suffix: format!(", pod: {name}"),
        }),
    };
    Chain {
        wave: Wave::Pods,
        pace: Pace::SlowStart,
        steps: volumes.claims(id).into_iter().chain([step]).collect(),
    }
}

/// The pod all new pods of a revision start from. The specification is the template's, whole.
fn pod(observed: &Observed<'_>, revision: &Revision, now: Timestamp) -> Value {
    let set = observed.set;
    let of_template = |member: &str| revision.template.pointer(&format!("/metadata/{member}")).cloned();
    let mut labels = object(of_template("labels"));
    labels.insert(REVISION_HASH.into(), revision_label(observed, revision).into());
    labels.insert(POD_TEMPLATE_HASH.into(), revision.hash.as_str().into());
    labels.insert(LIFECYCLE_STATE.into(), State::PreparingNormal.as_str().into());
    let mut annotations = object(of_template("annotations"));
    annotations.insert(LIFECYCLE_TIMESTAMP.into(), go_time(now).into());
    let mut metadata = json!({
        "generateName": format!("{}-", set.metadata.name),
        "namespace": set.metadata.namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [writes::owner_reference(observed)],
    });
    if let Some(finalizers) = of_template("finalizers").filter(|finalizers| !finalizers.is_null()) {
        put(&mut metadata, &["finalizers"], finalizers);
    }
    let mut spec = object(revision.template.get("spec").cloned());
    add_gates(&mut spec, observed.options.pod_ready_gate);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Value of the revision label.
pub(super) fn revision_label<'r>(observed: &Observed<'_>, revision: &'r Revision) -> &'r str {
    if observed.options.short_hash {
        &revision.hash
    } else {
        &revision.name
    }
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Appends our readiness gates. The webhook would add `KruisePodReady` too; adding it here keeps pods right while the
/// webhook is away.
fn add_gates(spec: &mut Map<String, Value>, pod_ready_gate: bool) {
    let gates = spec.entry("readinessGates").or_insert_with(|| json!([]));
    if gates.is_null() {
        *gates = json!([]);
    }
    let Some(gates) = gates.as_array_mut() else { return };
    let wanted = [(IN_PLACE_UPDATE_READY, true), (KRUISE_POD_READY, pod_ready_gate)];
    for (gate, _) in wanted.into_iter().filter(|(_, wanted)| *wanted) {
        if !gates
            .iter()
            .any(|have| have.get("conditionType").is_some_and(|kind| kind == gate))
        {
            gates.push(json!({"conditionType": gate}));
        }
    }
}
