//! The writes to revisions.

use kruise_api::{
    meta::StringMap,
    names::{LAST_APPLIED, TEMPLATE_HASH},
};
use kruise_views::RevisionView;
use serde_json::{Map, Value, json};

use super::Identity;
use crate::{
    Intent, ResourceId, Template,
    owner::Owner,
    plan::{ObjectWrites, Phase, Step},
    write::{Part, Patch, Precondition, Write},
};

/// A revision that is to be made.
pub struct NewRevision<'a> {
    /// Its name.
    pub identity: &'a Identity,
    /// Its place in the history.
    pub number: i64,
    /// What it holds, as JSON.
    pub data: &'a str,
    /// All of its labels.
    pub labels: Value,
    /// Annotations of its owner, of which it gets all but what `kubectl apply` keeps there.
    pub inherited: &'a StringMap,
    /// Annotations of its own.
    pub annotations: Vec<(&'static str, &'a str)>,
}

impl NewRevision<'_> {
    /// Its creation.
    pub fn create(self, owner: &Owner<'_>, reason: String) -> ObjectWrites {
        let inherited = self.inherited.iter().filter(|(key, _)| *key != LAST_APPLIED);
        let inherited = inherited.map(|(key, value)| (key.clone(), value.as_str().into()));
        let own = self.annotations.into_iter();
        let own = own.map(|(key, value)| (key.to_owned(), value.into()));
        let annotations: Map<String, Value> = inherited.chain(own).collect();
        let name = self.identity.name.as_str();
        let body = json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": owner.namespace,
                "labels": self.labels,
                "annotations": annotations,
                "ownerReferences": [owner.reference()],
            },
            "data": serde_json::from_str::<Value>(self.data).unwrap_or_default(),
            "revision": self.number,
        });
        let write = owner.create(Intent::CREATE_REVISION, ResourceId::REVISIONS, name, body);
        ObjectWrites::alone(Phase::Revisions, write, reason)
    }
}

/// A change of a revision as it is, which pods that name it wait for.
pub fn patch(
    owner: &Owner<'_>,
    view: &RevisionView,
    intent: Intent,
    patch: Value,
    reason: String,
) -> ObjectWrites {
    let (uid, version) = (view.uid.to_string(), view.resource_version.to_string());
    let write = write(
        owner,
        view,
        intent,
        patch,
        Precondition::UidAndVersion(uid, version),
    );
    ObjectWrites::alone(Phase::Revisions, write, reason)
}

/// A note on a revision, whatever else has happened to it.
pub fn label(owner: &Owner<'_>, view: &RevisionView, intent: Intent, labels: Value, reason: String) -> Step {
    let patch = json!({"metadata": {"labels": labels}});
    let write = write(
        owner,
        view,
        intent,
        patch,
        Precondition::Uid(view.uid.to_string()),
    );
    Step::new(write, reason)
}

/// Annotates a revision with the hash of the template that it is for, whatever else has happened to it.
pub(super) fn record(owner: &Owner<'_>, view: &RevisionView, live: &Template) -> ObjectWrites {
    let patch = json!({"metadata": {"annotations": {TEMPLATE_HASH: live.fingerprint()}}});
    let same = Precondition::Uid(view.uid.to_string());
    let write = write(owner, view, Intent::NOTE_TEMPLATE, patch, same);
    let reason = "it is for a template with further fields, which its writer dropped";
    ObjectWrites::alone(Phase::Cleanup, write, reason)
}

fn write(
    owner: &Owner<'_>,
    view: &RevisionView,
    intent: Intent,
    patch: Value,
    precondition: Precondition,
) -> Write {
    Write::Patch {
        intent,
        target: owner.target(ResourceId::REVISIONS, &*view.name),
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition,
    }
}

pub(super) fn delete(owner: &Owner<'_>, view: &RevisionView, reason: &str) -> ObjectWrites {
    let write = Write::Delete {
        intent: Intent::DELETE_REVISION,
        target: owner.target(ResourceId::REVISIONS, &*view.name),
        precondition: Precondition::Uid(view.uid.to_string()),
    };
    ObjectWrites::alone(Phase::Cleanup, write, reason)
}
