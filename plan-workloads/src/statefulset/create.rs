//! New pods.

use std::{cell::OnceCell, sync::Arc};

use kruise_api::{
    meta::{LabelSelector, StringMap},
    names::{
        KRUISE_POD_READY, LIFECYCLE_STATE, LIFECYCLE_TIMESTAMP, REVISION_HASH,
        statefulset::{POD_INDEX, POD_NAME},
    },
    statefulset::StatefulSetSpec,
};
use kruise_plan_kit::{
    Batching, Body, Intent, ObjectWrites, Phase, ResourceId, Step,
    lifecycle::{self, State, go_time},
    readiness,
    revision::Revision,
    rollout::Rollout,
};
use kruise_views::{Labels, PodView};
use serde_json::{Map, Value, json};

use super::{
    claims::{Claims, Obstacle},
    events,
};
use crate::json::members;

/// Makes new pods of both revisions.
pub(super) struct NewPods<'p> {
    rollout: &'p Rollout<'p>,
    claims: &'p Claims<'p>,
    service: &'p str,
    with_index: bool,
    ready_gate: bool,
    /// The set finds its pods by it.
    selector: Arc<LabelSelector>,
    /// The pods that all of the current and of the update revision start from.
    bases: [OnceCell<Arc<Value>>; 2],
}

impl<'p> NewPods<'p> {
    /// Makes pods of a specification. `with_index`: they have a label with their ordinal. `ready_gate`: they have the
    /// `KruisePodReady` gate.
    pub(super) fn new(
        rollout: &'p Rollout<'p>,
        claims: &'p Claims<'p>,
        spec: &'p StatefulSetSpec,
        with_index: bool,
        ready_gate: bool,
    ) -> Self {
        Self {
            rollout,
            claims,
            service: &spec.service_name,
            with_index,
            ready_gate,
            selector: Arc::new(spec.selector.clone()),
            bases: Default::default(),
        }
    }

    /// Creates the pod of an ordinal after the claims that it lacks.
    pub(super) fn create(&self, ordinal: i32, old: bool) -> Result<ObjectWrites, Obstacle> {
        let owner = &self.rollout.owner;
        let id = ordinal.to_string();
        let name = format!("{}-{id}", owner.name);
        let mut steps = self.claims.for_new_pod(ordinal, &name)?;
        let (revision, base) = if old {
            (&self.rollout.current, &self.bases[0])
        } else {
            (&self.rollout.update, &self.bases[1])
        };
        let base = base.get_or_init(|| Arc::new(self.pod(revision)));
        let mut set: Vec<(&'static str, Value)> = vec![("/metadata/name", name.as_str().into())];
        set.extend(self.identity(&name, &id, base));
        let body = Body {
            base: Arc::clone(base),
            set,
        };
        let write = owner.create(Intent::CREATE_POD, ResourceId::PODS, name.as_str(), body);
        let reason = if old {
            "its place is empty; it comes on the current revision"
        } else {
            "its place is empty"
        };
        let step = Step::new(write, reason).found_by(&self.selector);
        steps.push(events::reported(step, events::creation(owner, &name)));
        Ok(ObjectWrites {
            batching: Batching::SlowStart,
            ..ObjectWrites::new(Phase::Pods, steps)
        })
    }

    /// What the pod of an ordinal has of its own.
    fn identity(&self, name: &str, id: &str, base: &Value) -> Vec<(&'static str, Value)> {
        let mut set: Vec<(&'static str, Value)> = vec![
            (
                "/metadata/labels/statefulset.kubernetes.io~1pod-name",
                name.into(),
            ),
            ("/spec/hostname", name.into()),
        ];
        if self.with_index {
            set.push(("/metadata/labels/apps.kubernetes.io~1pod-index", id.into()));
        }
        let own = base.pointer("/spec/volumes");
        let volumes = self.claims.templates.volumes(self.rollout.owner.name, id, own);
        set.extend(volumes.map(|volumes| ("/spec/volumes", volumes)));
        set
    }

    /// A pod of a revision as it would be made in the place of this one, but without a name.
    pub(super) fn trial(&self, revision: &Revision, name: &str) -> Value {
        let id = name.rsplit('-').next().unwrap_or_default();
        let base = Arc::new(self.pod(revision));
        let set = self.identity(name, id, &base);
        Body { base, set }.render()
    }

    /// The pod all new pods of a revision start from. The specification is the template's, whole.
    fn pod(&self, revision: &Revision) -> Value {
        let rollout = self.rollout;
        let of_template = |member: &str| revision.template.pointer(&format!("/metadata/{member}")).cloned();
        let mut labels = members(of_template("labels"));
        let finalizers = of_template("finalizers").filter(|finalizers| !finalizers.is_null());
        let state = self.state(&labels, finalizers.as_ref());
        labels.insert(POD_NAME.into(), Value::Null);
        if self.with_index {
            labels.insert(POD_INDEX.into(), Value::Null);
        }
        labels.insert(REVISION_HASH.into(), rollout.label_of(revision).into());
        labels.insert(LIFECYCLE_STATE.into(), state.as_str().into());
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
        if let (Some(finalizers), Value::Object(metadata)) = (finalizers, &mut metadata) {
            metadata.insert("finalizers".into(), finalizers);
        }
        let mut spec = members(revision.template.get("spec").cloned());
        spec.remove("subdomain");
        if !self.service.is_empty() {
            spec.insert("subdomain".into(), self.service.into());
        }
        if self.ready_gate {
            readiness::add_gate(&mut spec, KRUISE_POD_READY);
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    }

    /// The lifecycle state of a new pod: held only if a `preNormal` hook is configured that it does not come with.
    fn state(&self, labels: &Map<String, Value>, finalizers: Option<&Value>) -> State {
        let hook = self.rollout.lifecycle.and_then(|hooks| hooks.pre_normal.as_ref());
        let labels: StringMap = labels
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let finalizers = finalizers.and_then(Value::as_array).into_iter().flatten();
        let pod = PodView {
            labels: labels
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect::<Labels>(),
            finalizers: finalizers
                .filter_map(|finalizer| finalizer.as_str().map(Box::from))
                .collect(),
            ..PodView::default()
        };
        if hook.is_some() && !lifecycle::fully_hooked(hook, &pod) {
            State::PreparingNormal
        } else {
            State::Normal
        }
    }
}
