//! New pods.

use std::{cell::OnceCell, collections::BTreeSet, sync::Arc};

use go_compat::Rounding;
use kruise_api::{
    broadcastjob::BroadcastJob,
    meta::LabelSelector,
    names::{KRUISE_POD_READY, broadcastjob},
};
use kruise_plan_kit::{
    Batching, Body, EventNote, Explain, Intent, ObjectWrites, Owner, Phase, Plan, ResourceId, Step, Why,
    fit::Binding, injected::is_injected, instance, newest::Newest, put, readiness,
};
use serde_json::{Value, json};

use super::{
    events,
    places::{Counts, Place, Places},
    snapshot::{Options, Snapshot},
};
use crate::json::members;

/// Creates pods for the nodes that have none, as far as `parallelism` allows.
pub(super) fn create(
    snapshot: &Snapshot<'_>,
    owner: &Owner<'_>,
    (places, counts): (&Places<'_>, Counts),
    plan: &mut Plan,
    newest: &Newest,
) {
    let mut empty: Vec<&Place<'_>> = places.empty().collect();
    if empty.is_empty() {
        return;
    }
    let limit = match limit(snapshot.job, counts.desired) {
        Ok(limit) => limit,
        Err(problem) => {
            let text = format!("no pod is created: {problem}");
            plan.why.push(Why::of_set(&*text));
            plan.events
                .push(EventNote::new(&kruise_plan_kit::events::INVALID_SPEC, text));
            return;
        }
    };
    // A pod that cannot run takes no place of one that can.
    let active = counts.active - counts.unfit;
    if active > limit {
        plan.events.push(events::too_many(active, limit));
    }
    let room = limit.saturating_sub(active).max(0);
    let room = room.saturating_add(i32::from(is_injected("ParallelismOffByOne")));
    let room = usize::try_from(room).unwrap_or(0);
    let names = places.members().map(|member| member.view.name.to_string());
    let foreign = snapshot.memory.taken_names.iter().cloned();
    let mut new_pods = NewPods {
        job: snapshot.job,
        owner,
        options: snapshot.options,
        taken: names.chain(foreign).collect(),
        newest,
        base: OnceCell::new(),
        anything: Arc::default(),
    };
    // A node whose pod the server refuses keeps no other one waiting.
    let refused = &snapshot.memory.refused_names;
    empty.sort_by_key(|place| !refused.is_empty() && refused.contains(&new_pods.name(place.name)));
    for (index, place) in empty.into_iter().enumerate() {
        if index < room {
            plan.writes.push(new_pods.create(place.name));
        } else if snapshot.explain == Explain::No {
            return;
        } else {
            let text = format!("gets no pod yet: parallelism lets {limit} run, and {active} do");
            plan.why.push(Why::of_node(place.name, text));
        }
    }
}

/// How many pods may be active.
fn limit(job: &BroadcastJob, desired: i32) -> Result<i32, String> {
    let Some(parallelism) = &job.spec.parallelism else {
        return Ok(i32::MAX);
    };
    let limit = parallelism.scaled_a(desired, Rounding::Up);
    limit.map_err(|error| format!("spec.parallelism {parallelism} cannot be read: {error}"))
}

/// Makes new pods.
struct NewPods<'p> {
    job: &'p BroadcastJob,
    owner: &'p Owner<'p>,
    options: Options,
    /// Names that pods have, or were given.
    taken: BTreeSet<String>,
    /// The newest pod that each node had.
    newest: &'p Newest,
    /// The pod that all new pods start from.
    base: OnceCell<Arc<Value>>,
    /// The job finds its pods by their controller alone.
    anything: Arc<LabelSelector>,
}

impl NewPods<'_> {
    /// The name of the next pod for a node.
    fn name(&self, node: &str) -> String {
        let predecessor = self.newest.get(node).map(|pod| &*pod.uid);
        let owner = (self.owner.name, self.owner.uid);
        instance::name_for_node(owner, (node, predecessor), &self.taken)
    }

    /// Creates the pod of a node.
    fn create(&mut self, node: &str) -> ObjectWrites {
        let (owner, name) = (self.owner, self.name(node));
        let binding = Binding::by_scheduler(self.options.by_scheduler);
        let base = self.base.get_or_init(|| Arc::new(self.pod(binding)));
        let body = Body {
            base: Arc::clone(base),
            set: vec![("/metadata/name", name.as_str().into()), binding.member(node)],
        };
        let write = owner.create(Intent::CREATE_POD, ResourceId::PODS, name.as_str(), body);
        let step = Step::new(write, format!("node {node} has no pod of the job")).found_by(&self.anything);
        let step = events::creation(step, &name);
        self.taken.insert(name);
        ObjectWrites {
            batching: Batching::SlowStart,
            ..ObjectWrites::new(Phase::Pods, vec![step])
        }
    }

    /// The pod that all new pods start from: the template, with the labels that mark the pods of the job.
    fn pod(&self, binding: Binding) -> Value {
        let template = &self.job.spec.template;
        let of_template = |member: &str| template.pointer(&format!("/metadata/{member}")).cloned();
        let mut labels = members(of_template("labels"));
        labels.insert(broadcastjob::NAME.into(), self.owner.name.into());
        labels.insert(broadcastjob::UID.into(), self.owner.uid.into());
        let mut metadata = json!({
            "generateName": format!("{}-", self.owner.name),
            "namespace": self.owner.namespace,
            "labels": labels,
            "ownerReferences": [self.owner.reference()],
        });
        for member in ["annotations", "finalizers"] {
            if let Some(value) = of_template(member).filter(|value| !value.is_null()) {
                put(&mut metadata, &[member], value);
            }
        }
        let mut spec = members(template.get("spec").cloned());
        if self.options.pod_ready_gate {
            readiness::add_gate(&mut spec, KRUISE_POD_READY);
        }
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        binding.prepare(&mut pod);
        pod
    }
}
