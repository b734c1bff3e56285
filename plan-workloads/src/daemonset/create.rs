//! New pods.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeSet,
    sync::Arc,
};

use kruise_api::{
    daemonset::DaemonSet,
    meta::LabelSelector,
    names::{
        IN_PLACE_UPDATE_READY, KRUISE_POD_READY, REVISION_HASH,
        daemonset::{POD_TEMPLATE_GENERATION, SCHEDULER, TEMPLATE_GENERATION},
    },
};
use kruise_plan_kit::{
    Batching, Body, Intent, ObjectWrites, Phase, ResourceId, Step,
    fit::{self, Binding},
    instance,
    newest::Newest,
    put, readiness,
    revision::Revision,
    rollout::Rollout,
};
use serde_json::{Value, json};

use super::{events, snapshot::Options};
use crate::json::members;

/// Makes new pods.
pub(super) struct NewPods<'p> {
    set: &'p DaemonSet,
    rollout: &'p Rollout<'p>,
    options: Options,
    /// Names that pods have, or were given.
    taken: RefCell<BTreeSet<String>>,
    /// The newest pod that each node had.
    newest: &'p Newest,
    /// The pod that all new pods start from.
    base: OnceCell<Arc<Value>>,
    /// The set finds its pods by it.
    selector: Arc<LabelSelector>,
}

impl<'p> NewPods<'p> {
    /// Makes pods with other names than these.
    pub(super) fn new(
        set: &'p DaemonSet,
        rollout: &'p Rollout<'p>,
        options: Options,
        (taken, newest): (BTreeSet<String>, &'p Newest),
    ) -> Self {
        Self {
            set,
            rollout,
            options,
            taken: RefCell::new(taken),
            newest,
            base: OnceCell::new(),
            selector: Arc::new(set.spec.selector.clone()),
        }
    }

    /// The name of the next pod for a node.
    pub(super) fn name(&self, node: &str) -> String {
        let owner = &self.rollout.owner;
        let predecessor = self.newest.get(node).map(|pod| &*pod.uid);
        let taken = self.taken.borrow();
        instance::name_for_node((owner.name, owner.uid), (node, predecessor), &taken)
    }

    /// Creates the next pod for a node.
    pub(super) fn create(&self, node: &str, reason: &str) -> ObjectWrites {
        let name = self.name(node);
        let base = self.base.get_or_init(|| Arc::new(self.pod(&self.rollout.update)));
        let set = vec![
            ("/metadata/name", name.as_str().into()),
            self.binding().member(node),
        ];
        let body = Body {
            base: Arc::clone(base),
            set,
        };
        let owner = &self.rollout.owner;
        let write = owner.create(Intent::CREATE_POD, ResourceId::PODS, name.as_str(), body);
        let step = Step::new(write, reason).found_by(&self.selector);
        let step = events::creation(step, &name);
        self.taken.borrow_mut().insert(name);
        ObjectWrites {
            batching: Batching::SlowStart,
            ..ObjectWrites::new(Phase::Pods, vec![step])
        }
    }

    /// A pod of a revision as it would be made for a node, but without a name.
    pub(super) fn trial(&self, revision: &Revision, node: &str) -> Value {
        let base = Arc::new(self.pod(revision));
        let set = vec![self.binding().member(node)];
        Body { base, set }.render()
    }

    /// The pod that new pods of a revision start from. The specification is the template's, but for what a daemon
    /// needs.
    fn pod(&self, revision: &Revision) -> Value {
        let rollout = self.rollout;
        let template = &*revision.template;
        let of_template = |member: &str| template.pointer(&format!("/metadata/{member}")).cloned();
        let mut labels = members(of_template("labels"));
        if let Some(generation) = self.set.metadata.annotations.get(TEMPLATE_GENERATION) {
            labels.insert(POD_TEMPLATE_GENERATION.into(), generation.as_str().into());
        }
        labels.insert(REVISION_HASH.into(), rollout.label_of(revision).into());
        let owner = &rollout.owner;
        let mut metadata = json!({
            "generateName": format!("{}-", owner.name),
            "namespace": owner.namespace,
            "labels": labels,
            "ownerReferences": [owner.reference()],
        });
        for member in ["annotations", "finalizers"] {
            if let Some(value) = of_template(member).filter(|value| !value.is_null()) {
                put(&mut metadata, &[member], value);
            }
        }
        let mut spec = members(template.get("spec").cloned());
        spec.insert("tolerations".into(), fit::for_daemons(template).into());
        if rollout.strategy.policy.is_in_place() {
            readiness::add_gate(&mut spec, IN_PLACE_UPDATE_READY);
        }
        if self.options.pod_ready_gate {
            readiness::add_gate(&mut spec, KRUISE_POD_READY);
        }
        if !self.options.by_scheduler {
            spec.insert("schedulerName".into(), SCHEDULER.into());
        }
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        self.binding().prepare(&mut pod);
        pod
    }

    fn binding(&self) -> Binding {
        Binding::by_scheduler(self.options.by_scheduler)
    }
}
