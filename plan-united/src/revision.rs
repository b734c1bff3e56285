//! The revisions of a UnitedDeployment: its whole template, of which the pod template is a part.

use std::collections::BTreeSet;

use go_compat::{
    json::{Integers, encode, without_empty},
    pod_template::{canonical_claim, canonical_pod_template},
};
use kruise_api::{
    convert::convert_as,
    meta::StringMap,
    names::CONTROLLER_HASH,
    uniteddeployment::{Child, KIND, UnitedDeployment, workload_template},
};
use kruise_plan_kit::{
    Intent, ObjectWrites, Owner,
    history::{History, Keep, Match, NewRevision, patch},
};
use kruise_views::RevisionView;
use serde_json::{Map, Value, json};

use crate::{events, snapshot::Snapshot};

/// The newest revision, and the one that was last rolled out in full.
pub(crate) struct Revisions {
    history: History,
    /// Name of the newest revision.
    pub(crate) updated: String,
    /// Name of the current revision.
    pub(crate) current: String,
    /// Creates the newest revision, or renumbers it.
    pub(crate) write: Option<ObjectWrites>,
}

impl Revisions {
    pub(crate) fn find(snapshot: &Snapshot<'_>, owner: &Owner<'_>, child: Child) -> Self {
        let united = snapshot.united;
        let history = History::new(snapshot.revisions);
        let live = meaning(child, &united.spec.template);
        let is_it =
            |view: &RevisionView| stored_template(view).is_some_and(|stored| meaning(child, &stored) == live);
        let (updated, write) = match history.find(is_it) {
            Match::Newest(view) => (view.name.to_string(), None),
            Match::Older(view, number) => {
                let reason = format!("the template is back: revision {number}");
                let number = json!({ "revision": number });
                let write = patch(owner, view, Intent::RENUMBER_REVISION, number, reason);
                (view.name.to_string(), Some(write))
            }
            Match::Missing(number) => create(snapshot, (owner, child), &history, number),
        };
        let reported = &united.status.current_revision;
        let current = history.get(reported).map_or(&updated, |_| reported).clone();
        let write = write.map(|mut write| {
            for step in &mut write.steps {
                step.failed = Some(events::no_revision());
            }
            write
        });
        Self {
            history,
            updated,
            current,
            write,
        }
    }

    /// The template that a revision holds, in the newest version.
    pub(crate) fn template(&self, name: &str) -> Option<Value> {
        stored_template(self.history.get(name)?)
    }

    /// Deletes the oldest revisions beyond the limit that nothing uses.
    pub(crate) fn truncate(
        &self,
        owner: &Owner<'_>,
        united: &UnitedDeployment,
        used: &BTreeSet<&str>,
    ) -> Vec<ObjectWrites> {
        let all = self.history.all();
        let surplus = all.len().saturating_sub(united.spec.history_limit());
        let oldest: BTreeSet<&str> = all.iter().take(surplus).map(|view| &*view.name).collect();
        let status = &united.status;
        let kept = [
            &*self.updated,
            &*self.current,
            &*status.current_revision,
            &*status.updated_revision,
        ];
        let is_used = |view: &RevisionView| !oldest.contains(&*view.name) || used.contains(&*view.name);
        let keep = Keep::InAll(united.spec.history_limit());
        let reason = "more revisions are kept than the limit says";
        self.history.truncate(owner, keep, &kept, is_used, reason)
    }
}

fn create(
    snapshot: &Snapshot<'_>,
    (owner, child): (&Owner<'_>, Child),
    history: &History,
    number: i64,
) -> (String, Option<ObjectWrites>) {
    let template = &snapshot.united.spec.template;
    let data = data(child, template);
    let identity = history.identify(owner, &data, &snapshot.memory.taken_names, 0);
    let labels = template
        .get(child.member())
        .and_then(|of| of.pointer("/metadata/labels"));
    let mut labels = labels
        .filter(|labels| labels.is_object())
        .cloned()
        .unwrap_or(json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(CONTROLLER_HASH.to_owned(), identity.hash.as_str().into());
    }
    let new = NewRevision {
        identity: &identity,
        number,
        data: &data,
        labels,
        inherited: &StringMap::new(),
        annotations: Vec::new(),
    };
    let write = new.create(owner, format!("the template changed: revision {number}"));
    (identity.name, Some(write))
}

/// The template in a revision, in the newest version. Those of OpenKruise up to 1.9 hold CloneSets of `v1alpha1`.
fn stored_template(view: &RevisionView) -> Option<Value> {
    let mut older = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": KIND.kind, "spec": {"template": view.template()?}});
    convert_as(&KIND, &mut older, "apps.kruise.io/v1beta1").ok()?;
    let template = older.pointer_mut("/spec/template")?.take();
    workload_template(&template).is_some().then_some(template)
}

/// The data of the revision of a template, as OpenKruise writes it. These bytes are hashed.
pub(crate) fn data(child: Child, template: &Value) -> String {
    let mut template = canonical(child, template);
    template.insert("$patch".to_owned(), "replace".into());
    encode(&json!({"spec": {"template": template}}), Integers::AsFloat)
}

/// A template as Go writes it.
fn canonical(child: Child, template: &Value) -> Map<String, Value> {
    let none = Value::Null;
    let of_kind = template.get(child.member()).unwrap_or(&none);
    let metadata = canonical_pod_template(&json!({"metadata": of_kind.get("metadata")}));
    let mut spec = of_kind
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    spec.retain(|_, member| !member.is_null());
    let pods = canonical_pod_template(spec.get("template").unwrap_or(&none));
    spec.insert("template".to_owned(), pods);
    if let Some(Value::Array(claims)) = spec.get_mut("volumeClaimTemplates") {
        for claim in claims {
            *claim = canonical_claim(claim);
        }
    }
    // Structs that are no pointers are always written.
    let always: &[(&str, Value)] = match child {
        Child::StatefulSet => &[("serviceName", json!("")), ("updateStrategy", json!({}))],
        Child::AdvancedStatefulSet => &[("updateStrategy", json!({}))],
        Child::CloneSet => &[("scaleStrategy", json!({})), ("updateStrategy", json!({}))],
        Child::Deployment => &[("strategy", json!({}))],
    };
    for (name, value) in always.iter().chain(&[("selector", Value::Null)]) {
        spec.entry(*name).or_insert_with(|| value.clone());
    }
    let of_kind = json!({"metadata": metadata.get("metadata"), "spec": spec});
    Map::from_iter([(child.member().to_owned(), of_kind)])
}

/// What a template means: equal for equal meaning, whoever wrote it.
fn meaning(child: Child, template: &Value) -> Option<Value> {
    template.get(child.member())?;
    let mut whole = Value::Object(canonical(child, template));
    let spec = whole.get_mut(child.member())?.get_mut("spec")?;
    // What is empty means something in a pod template, which is spelled alike already.
    let pods = spec.get_mut("template").map(Value::take);
    if let Some(Value::Object(scale)) = spec.get_mut("scaleStrategy")
        && scale.get("enablePVCReuse") == Some(&Value::Bool(false))
    {
        // The definition fills it in.
        scale.remove("enablePVCReuse");
    }
    Some(json!([without_empty(&whole), pods]))
}
