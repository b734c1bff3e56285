//! New pods.

use std::sync::Arc;

use kruise_api::meta::LabelSelector;
use kruise_api::names::{
    IN_PLACE_UPDATE_READY, INSTANCE_ID, KRUISE_POD_READY, LIFECYCLE_STATE, LIFECYCLE_TIMESTAMP,
    POD_TEMPLATE_HASH, REVISION_HASH,
};
use kruise_plan_kit::{
    Batching, Body, EventNote, FailureNote, Intent, ObjectWrites, Phase, Plan, ResourceId, Step, Why, events,
    instance,
    lifecycle::{State, go_time},
    put, readiness,
    revision::Revision,
    rollout::Rollout,
};
use serde_json::{Value, json};

use super::{
    claims::{Leaving, Places, Vacant},
    volumes::{self, Volumes},
};
use crate::json::members;

/// Most pods that one plan creates, about 5 MB of it: a slip of the pen in `replicas` must not cost the manager its
/// memory. The pods themselves bring the next plan.
const MOST: usize = 5000;

/// [`INSTANCE_ID`] as a JSON pointer.
pub(super) const INSTANCE_ID_POINTER: &str = "/metadata/labels/apps.kruise.io~1cloneset-instance-id";

/// The id of a pod that the server is asked about.
const TRIAL_ID: &str = "trial";

/// Makes new pods.
pub(super) struct NewPods<'a> {
    pub(super) places: &'a Places<'a>,
    /// Their claim templates.
    pub(super) volumes: Volumes<'a>,
    /// Version of the set: names come out of it.
    pub(super) version: &'a str,
    /// Do pods carry the `KruisePodReady` gate?
    pub(super) ready_gate: bool,
    /// The set finds them by it.
    pub(super) selector: Arc<LabelSelector>,
}

impl NewPods<'_> {
    /// Creates `count` pods, `old` of them on the current revision; of many only the first [`MOST`]. Says in the
    /// plan why some are not made yet.
    pub(super) fn create(
        &self,
        rollout: &Rollout<'_>,
        count: usize,
        old: usize,
        plan: &mut Plan,
    ) -> Vec<ObjectWrites> {
        let count = count.min(MOST);
        let Vacant { free, leaving } = self.places.vacant(rollout.now);
        let mut waiting = 0;
        let (mut ids, open) = if self.places.reuse {
            let free: Vec<String> = free.into_iter().take(count).collect();
            let leaving = leaving.into_iter().take(count - free.len());
            waiting = leaving.len();
            wait_for(leaving, plan);
            (free, Vec::new())
        } else {
            (Vec::new(), free)
        };
        let fresh = count.saturating_sub(ids.len() + waiting);
        let mut used = self.used_ids(&open);
        let is_free = |id: &&str| used.binary_search(id).is_err() && ids.iter().all(|taken| taken != id);
        let late: Vec<&str> = self.places.late_ids().filter(is_free).take(fresh).collect();
        ids.extend(late.iter().map(|id| (*id).to_owned()));
        used.extend(&late);
        used.sort_unstable();
        let drawn = fresh - late.len();
        ids.extend(instance::ids(rollout.owner.uid, self.version, &used, drawn));
        ids.sort_unstable();
        let current = Arc::new(self.pod(rollout, &rollout.current));
        let update = Arc::new(self.pod(rollout, &rollout.update));
        let volumes = self.volumes.prepared();
        let bases = std::iter::repeat_n(&current, old).chain(std::iter::repeat(&update));
        let pods = ids.into_iter().zip(bases);
        pods.map(|(id, base)| {
            let mut steps = volumes::claims(&volumes, self.places, &id);
            let mounted = volumes.volumes(rollout.owner.name, &id, base.pointer("/spec/volumes"));
            steps.push(one(rollout, Arc::clone(base), &id, mounted).found_by(&self.selector));
            ObjectWrites {
                batching: Batching::SlowStart,
                ..ObjectWrites::new(Phase::Pods, steps)
            }
        })
        .collect()
    }

    /// A pod of a revision as it would be made, but without a name.
    pub(super) fn trial(&self, rollout: &Rollout<'_>, revision: &Revision) -> Value {
        let base = Arc::new(self.pod(rollout, revision));
        let volumes = self.volumes.prepared();
        let mounted = volumes.volumes(rollout.owner.name, TRIAL_ID, base.pointer("/spec/volumes"));
        let mut set = vec![(INSTANCE_ID_POINTER, TRIAL_ID.into())];
        set.extend(mounted.map(|volumes| ("/spec/volumes", volumes)));
        Body { base, set }.render()
    }

    /// Ids that a pod or a claim of this set, in any state, or somebody else's object holds, sorted. Not those of
    /// `open`: their claims have no pod. If this very version of the set made them, an earlier attempt at the same
    /// plan got no further, and they are drawn again, so that a pod that was made all the same meets itself.
    fn used_ids(&self, open: &[String]) -> Vec<&str> {
        let Places { pods, claims, .. } = self.places;
        let mut used = Vec::with_capacity(pods.len());
        for pod in *pods {
            let (label, name) = (pod.labels.get(INSTANCE_ID), self.places.id_of(&pod.name));
            used.extend(label);
            used.extend(name.filter(|_| name != label));
        }
        used.extend(self.places.taken_ids());
        let is_open = |id: &&str| open.binary_search_by(|open| open.as_str().cmp(id)).is_ok();
        used.extend(claims.ids().filter(|id| !is_open(id)));
        used.sort_unstable();
        used
    }

    /// The pod all new pods of a revision start from. The specification is the template's, whole.
    fn pod(&self, rollout: &Rollout<'_>, revision: &Revision) -> Value {
        let of_template = |member: &str| revision.template.pointer(&format!("/metadata/{member}")).cloned();
        let mut labels = members(of_template("labels"));
        labels.insert(REVISION_HASH.into(), rollout.label_of(revision).into());
        labels.insert(POD_TEMPLATE_HASH.into(), revision.hash.as_str().into());
        labels.insert(LIFECYCLE_STATE.into(), State::PreparingNormal.as_str().into());
        let mut annotations = members(of_template("annotations"));
        annotations.insert(LIFECYCLE_TIMESTAMP.into(), go_time(rollout.now).into());
        let owner = &rollout.owner;
        let mut metadata = json!({
            "generateName": format!("{}-", owner.name),
            "namespace": owner.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner.reference()],
        });
        if let Some(finalizers) = of_template("finalizers").filter(|finalizers| !finalizers.is_null()) {
            put(&mut metadata, &["finalizers"], finalizers);
        }
        let mut spec = members(revision.template.get("spec").cloned());
        let wanted = [(IN_PLACE_UPDATE_READY, true), (KRUISE_POD_READY, self.ready_gate)];
        for (gate, _) in wanted.into_iter().filter(|(_, wanted)| *wanted) {
            readiness::add_gate(&mut spec, gate);
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    }
}

/// A pod that is still being deleted keeps its place until it is gone: one line of explanation for each, and no pod.
fn wait_for(leaving: impl Iterator<Item = Leaving>, plan: &mut Plan) {
    for Leaving { pod, left } in leaving {
        let text = "is being deleted: the pod in its place takes its name and its claims, and waits until it is gone";
        plan.why.push(Why::new(pod, text));
        plan.requeue_after([left]);
    }
}

fn one(rollout: &Rollout<'_>, base: Arc<Value>, id: &str, volumes: Option<Value>) -> Step {
    let owner = &rollout.owner;
    let name = format!("{}-{id}", owner.name);
    let mut set = vec![
        ("/metadata/name", name.as_str().into()),
        (INSTANCE_ID_POINTER, id.into()),
    ];
    set.extend(volumes.map(|volumes| ("/spec/volumes", volumes)));
    let body = Body { base, set };
    let write = owner.create(Intent::CREATE_POD, ResourceId::PODS, name.as_str(), body);
    Step {
        done: Some(EventNote::new(
            &events::SUCCESSFUL_CREATE,
            format!("succeed to create pod {name}"),
        )),
        failed: Some(FailureNote {
            reason: &events::FAILED_CREATE,
            prefix: "failed to create pod: ".into(),
            suffix: format!(", pod: {name}"),
        }),
        ..Step::new(write, "replicas are missing")
    }
}
