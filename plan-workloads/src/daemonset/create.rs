//! New pods.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeSet,
    sync::Arc,
};

use kruise_api::{
    daemonset::DaemonSet,
    names::{
        IN_PLACE_UPDATE_READY, KRUISE_POD_READY, REVISION_HASH,
        daemonset::{POD_TEMPLATE_GENERATION, SCHEDULER, TEMPLATE_GENERATION},
    },
};
use kruise_plan_kit::{
    Batching, Body, Intent, ObjectWrites, Phase, ResourceId, Step, fit,
    injected::{Bug, is_injected},
    instance, put, readiness,
    rollout::Rollout,
};
use serde_json::{Map, Value, json};

use super::{events, snapshot::Options};

/// Where a new pod says which node it is for.
const REQUIRED: [&str; 4] = [
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
];

/// Makes new pods.
pub(super) struct NewPods<'p> {
    set: &'p DaemonSet,
    rollout: &'p Rollout<'p>,
    options: Options,
    /// Names that pods have, or were given.
    taken: RefCell<BTreeSet<String>>,
    /// The pod that all new pods start from.
    base: OnceCell<Arc<Value>>,
}

impl<'p> NewPods<'p> {
    /// Makes pods with other names than these.
    pub(super) fn new(
        set: &'p DaemonSet,
        rollout: &'p Rollout<'p>,
        options: Options,
        taken: BTreeSet<String>,
    ) -> Self {
        Self {
            set,
            rollout,
            options,
            taken: RefCell::new(taken),
            base: OnceCell::new(),
        }
    }

    /// The name of the next pod for a node.
    pub(super) fn name(&self, node: &str) -> String {
        // A name must not depend on what else there is.
        let node = if is_injected(Bug::NameForSeveralNodes) {
            ""
        } else {
            node
        };
        let owner = &self.rollout.owner;
        let taken = self.taken.borrow();
        let mut index = 0;
        loop {
            let id = instance::id_for_node(owner.uid, node, index);
            let name = format!("{}-{id}", owner.name);
            if !taken.contains(&name) {
                return name;
            }
            index += 1;
        }
    }

    /// Creates the next pod for a node.
    pub(super) fn create(&self, node: &str, reason: &str) -> ObjectWrites {
        let name = self.name(node);
        let base = self.base.get_or_init(|| Arc::new(self.pod()));
        let mut set: Vec<(&'static str, Value)> = vec![("/metadata/name", name.as_str().into())];
        if self.options.by_scheduler {
            let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
            let term = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
            let path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
            set.push((path, term));
        } else {
            set.push(("/spec/nodeName", node.into()));
        }
        let body = Body {
            base: Arc::clone(base),
            set,
        };
        let owner = &self.rollout.owner;
        let write = owner.create(Intent::CreatePod, ResourceId::PODS, name.as_str(), body);
        let step = events::creation(Step::new(write, reason), &name);
        self.taken.borrow_mut().insert(name);
        ObjectWrites {
            batching: Batching::SlowStart,
            ..ObjectWrites::new(Phase::Pods, vec![step])
        }
    }

    /// The pod all new pods start from. The specification is the template's, but for what a daemon needs.
    fn pod(&self) -> Value {
        let rollout = self.rollout;
        let template = &*rollout.update.template;
        let of_template = |member: &str| template.pointer(&format!("/metadata/{member}")).cloned();
        let mut labels = object(of_template("labels"));
        if let Some(generation) = self.set.metadata.annotations.get(TEMPLATE_GENERATION) {
            labels.insert(POD_TEMPLATE_GENERATION.into(), generation.as_str().into());
        }
        labels.insert(REVISION_HASH.into(), rollout.label_of(&rollout.update).into());
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
        let mut spec = object(template.get("spec").cloned());
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
        if self.options.by_scheduler {
            make_objects(&mut pod, &REQUIRED);
        }
        pod
    }
}

/// Makes an object of each member on the way to the last of the path: a template may have null there.
fn make_objects(value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    if let Some(members) = value.as_object_mut()
        && !rest.is_empty()
    {
        make_objects(members.entry(*first).or_insert(Value::Null), rest);
    }
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}
