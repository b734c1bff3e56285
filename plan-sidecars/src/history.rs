//! Which revision is that of the specification, and which writes that needs.

use std::collections::BTreeSet;

use kruise_api::names::CONTROLLER_HASH;
use kruise_plan_kit::{
    Intent, ObjectWrites, Owner,
    history::{self, History, Keep, Match, NewRevision},
    put,
    sidecars::{Hashes, names, revision_data},
};
use kruise_views::RevisionView;
use serde_json::{Map, Value, json};

use crate::{pod::Pod, snapshot::Snapshot};

/// A revision gets the version that its author gave it.
const LABEL_REVISION: Intent = Intent::of_update("label-revision");

/// The revision of the specification, and the write that makes it exist, be the newest, or carry its version.
pub(crate) struct Found<'a> {
    /// Its name.
    pub(crate) name: String,
    /// Name collisions so far: part of every hash, from zero on.
    pub(crate) collision_count: i32,
    pub(crate) object: Option<ObjectWrites>,
    owner: Owner<'a>,
    history: History,
}

pub(crate) fn find<'a>(snapshot: &Snapshot<'a>, spec: &Value, hashes: &Hashes) -> Found<'a> {
    let set = snapshot.set;
    let owner = Owner {
        namespace: snapshot.namespace,
        ..Owner::new(snapshot.api_version, "SidecarSet", &set.metadata)
    };
    let data = revision_data(spec);
    let history = History::new(snapshot.revisions);
    let mut collision_count = set.status.collision_count.unwrap_or(0);
    let (name, object) = match history.find(|view| is_equal(view, &data)) {
        Match::Newest(view) => (view.name.to_string(), adjust(snapshot, &owner, view, None)),
        Match::Older(view, number) => {
            let object = adjust(snapshot, &owner, view, Some(number));
            (view.name.to_string(), object)
        }
        Match::Missing(number) => {
            let taken: &BTreeSet<String> = &snapshot.memory.taken_names;
            let identity = history.identify(&owner, &data, taken, collision_count);
            collision_count = identity.collision_count;
            let new = NewRevision {
                identity: &identity,
                number,
                data: &data,
                labels: labels(snapshot, &identity.hash),
                inherited: &set.metadata.annotations,
                annotations: vec![
                    (names::HASH, &hashes.full),
                    (names::HASH_WITHOUT_IMAGE, &hashes.without_image),
                ],
            };
            let object = new.create(&owner, format!("what is injected changed: revision {number}"));
            (identity.name, Some(object))
        }
    };
    Found {
        name,
        collision_count,
        object,
        owner,
        history,
    }
}

/// Bytes decide; where a server spelled fields differently, equal meaning decides.
fn is_equal(view: &RevisionView, data: &str) -> bool {
    if *view.data == *data {
        return true;
    }
    let stored: Option<Value> = serde_json::from_str(&view.data).ok();
    stored.is_some_and(|stored| stored.get("spec").is_some_and(|spec| revision_data(spec) == data))
}

fn labels(snapshot: &Snapshot<'_>, hash: &str) -> Value {
    let set = snapshot.set;
    let own = set.metadata.labels.iter();
    let own = own.map(|(key, value)| (key.clone(), value.as_str().into()));
    let mut labels: Map<String, Value> = own.collect();
    labels.insert(names::SET_NAME.into(), set.metadata.name.as_str().into());
    labels.insert(CONTROLLER_HASH.into(), hash.into());
    let version = &set.spec.custom_version;
    if !version.is_empty() {
        labels.insert(names::CUSTOM_VERSION.into(), version.as_str().into());
    }
    labels.into()
}

/// An older revision becomes the newest again, and carries the version that its author gives it now.
fn adjust(
    snapshot: &Snapshot<'_>,
    owner: &Owner<'_>,
    view: &RevisionView,
    number: Option<i64>,
) -> Option<ObjectWrites> {
    let version = &snapshot.set.spec.custom_version;
    let is_named = version.is_empty() || view.labels.get(names::CUSTOM_VERSION) == Some(version);
    let mut patch = json!({});
    if let Some(number) = number {
        put(&mut patch, &["revision"], number.into());
    }
    if !is_named {
        let labels = json!({names::CUSTOM_VERSION: version});
        put(&mut patch, &["metadata", "labels"], labels);
    }
    let (intent, reason) = match number {
        Some(number) => (
            Intent::RENUMBER_REVISION,
            format!("what is injected is back: revision {number}"),
        ),
        None if !is_named => (LABEL_REVISION, format!("it is called {version} now")),
        None => return None,
    };
    Some(history::patch(owner, view, intent, patch, reason))
}

/// Deletes the oldest revisions that nobody uses, beyond the limit. The newest always stays, and so does the one
/// that the status still calls the newest: users who want new pods to get what there is now read its name there.
pub(crate) fn truncate(snapshot: &Snapshot<'_>, found: &Found<'_>, pods: &[Pod<'_>]) -> Vec<ObjectWrites> {
    let (set, history) = (snapshot.set, &found.history);
    let limit = set.spec.revision_history_limit.unwrap_or(10).max(1) as usize;
    // One that is about to be made counts, too.
    let new = usize::from(history.get(&found.name).is_none());
    let injected = set.spec.injection_strategy.revision.as_ref();
    let named = injected.and_then(|revision| revision.revision_name.as_deref());
    let version = injected.and_then(|revision| revision.custom_version.as_deref());
    let versioned = version.and_then(|version| {
        let mut stored = history.all().iter();
        let newest = stored.rfind(|view| view.labels.get(names::CUSTOM_VERSION) == Some(version));
        newest.map(|newest| &*newest.name)
    });
    let kept: Vec<&str> = [&*found.name, &*set.status.latest_revision]
        .into_iter()
        .chain(named)
        .chain(versioned)
        .collect();
    let is_used = |view: &RevisionView| {
        let record = |pod: &Pod<'_>| {
            let record = pod.records.0.get(&set.metadata.name);
            record.is_some_and(|record| *record.controller_revision == *view.name)
        };
        pods.iter().any(record)
    };
    let reason = format!("more than {limit} revisions");
    history.truncate(&found.owner, Keep::InAll(limit - new), &kept, is_used, &reason)
}
