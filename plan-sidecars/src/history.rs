//! Which revision stands for the specification, and what has to be written for that.

use std::sync::Arc;

use go_compat::revision::{revision_hash, revision_name};
use kruise_api::names::{CONTROLLER_HASH, LAST_APPLIED};
use kruise_plan_kit::{
    Body, Chain, Intent, Part, Patch, Precondition, ResourceId, Target, Wave, Write, put,
    revision::sort,
    sidecars::{Hashes, names, revision_data},
};
use kruise_views::RevisionView;
use serde_json::{Map, Value, json};

use crate::{member::Member, observe::Observed};

/// The revision of the specification, and the write that makes it exist, be the newest, or carry its version.
pub(crate) struct Found {
    /// Its name.
    pub(crate) name: String,
    /// Name collisions so far: part of every hash, from zero on.
    pub(crate) collision_count: i32,
    pub(crate) chain: Option<Chain>,
    /// The history, oldest first.
    sorted: Vec<Arc<RevisionView>>,
}

pub(crate) fn find(observed: &Observed<'_>, spec: &Value, hashes: &Hashes) -> Found {
    let data = revision_data(spec);
    let mut sorted: Vec<Arc<RevisionView>> = observed.revisions.to_vec();
    sort(&mut sorted);
    let next = sorted.last().map_or(1, |last| last.number.saturating_add(1));
    let mut collision_count = observed.set.status.collision_count.unwrap_or(0);
    let found = sorted.iter().rposition(|view| is_equal(view, &data));
    let (name, chain) = if let Some((index, view)) = found.and_then(|index| Some((index, sorted.get(index)?)))
    {
        let is_newest = index + 1 == sorted.len();
        let chain = adjust(observed, view, (!is_newest).then_some(next));
        (view.name.to_string(), chain)
    } else {
        let (name, hash) = loop {
            let hash = revision_hash(data.as_bytes(), Some(collision_count));
            let name = revision_name(&observed.set.metadata.name, &hash);
            let stored = sorted.iter().any(|view| *view.name == *name);
            // A name that somebody else's object holds is a collision: count on and try the next.
            if !stored && !observed.memory.taken_names.contains(&name) {
                break (name, hash);
            }
            collision_count = collision_count.saturating_add(1);
        };
        let chain = create(observed, &name, &hash, next, &data, hashes);
        (name, Some(chain))
    };
    Found {
        name,
        collision_count,
        chain,
        sorted,
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

fn create(
    observed: &Observed<'_>,
    name: &str,
    hash: &str,
    number: i64,
    data: &str,
    hashes: &Hashes,
) -> Chain {
    let set = observed.set;
    let text = |(key, value): (&String, &String)| (key.clone(), Value::from(value.as_str()));
    let mut labels: Map<String, Value> = set.metadata.labels.iter().map(text).collect();
    labels.insert(names::SET_NAME.into(), set.metadata.name.as_str().into());
    labels.insert(CONTROLLER_HASH.into(), hash.into());
    let version = &set.spec.custom_version;
    if !version.is_empty() {
        labels.insert(names::CUSTOM_VERSION.into(), version.as_str().into());
    }
    let own = set
        .metadata
        .annotations
        .iter()
        .filter(|(key, _)| *key != LAST_APPLIED);
    let mut annotations: Map<String, Value> = own.map(text).collect();
    annotations.insert(names::HASH.into(), hashes.full.as_str().into());
    annotations.insert(
        names::HASH_WITHOUT_IMAGE.into(),
        hashes.without_image.as_str().into(),
    );
    let body = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": observed.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": observed.api_version,
                "kind": "SidecarSet",
                "name": set.metadata.name,
                "uid": set.metadata.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "data": serde_json::from_str::<Value>(data).unwrap_or_default(),
        "revision": number,
    });
    let write = Write::Create {
        intent: Intent::CreateRevision,
        target: target(observed, name),
        body: Body::from(body),
        owner_uid: set.metadata.uid.clone(),
    };
    let reason = format!("what is injected changed: revision {number}");
    Chain::alone(Wave::Revisions, write, reason)
}

/// An older revision becomes the newest again, and carries the version that its author gives it now.
fn adjust(observed: &Observed<'_>, view: &RevisionView, number: Option<i64>) -> Option<Chain> {
    let version = &observed.set.spec.custom_version;
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
            Intent::RenumberRevision,
            format!("what is injected is back: revision {number}"),
        ),
        None if !is_named => (Intent::LabelRevision, format!("it is called {version} now")),
        None => return None,
    };
    let write = Write::Patch {
        intent,
        target: target(observed, &view.name),
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition: Precondition::UidAndVersion(view.uid.to_string(), view.resource_version.to_string()),
    };
    Some(Chain::alone(Wave::Revisions, write, reason))
}

/// Deletes the oldest revisions that nobody uses, beyond the limit. The newest always stays, and so does the one that the
/// status still calls the newest: users who want new pods to get what there is now read its name there.
pub(crate) fn truncate(observed: &Observed<'_>, found: &Found, members: &[Member<'_>]) -> Vec<Chain> {
    let set = observed.set;
    let limit = set.spec.revision_history_limit.unwrap_or(10).max(1) as usize;
    let stored = found.sorted.iter().any(|view| *view.name == *found.name);
    let count = found.sorted.len() + usize::from(!stored);
    let surplus = count.saturating_sub(limit);
    if surplus == 0 {
        return Vec::new();
    }
    let injected = set.spec.injection_strategy.revision.as_ref();
    let named = injected.and_then(|revision| revision.revision_name.as_deref());
    let version = injected.and_then(|revision| revision.custom_version.as_deref());
    let versioned = version.and_then(|version| {
        let carries = |view: &&Arc<RevisionView>| view.labels.get(names::CUSTOM_VERSION) == Some(version);
        found.sorted.iter().rfind(carries)
    });
    let in_use = |view: &RevisionView| {
        *view.name == *found.name
            || *view.name == *set.status.latest_revision
            || named == Some(&*view.name)
            || versioned.is_some_and(|newest| newest.name == view.name)
            || members.iter().any(|member| {
                let record = member.records.0.get(&set.metadata.name);
                record.is_some_and(|record| *record.controller_revision == *view.name)
            })
    };
    let own = found
        .sorted
        .iter()
        .filter(|view| view.owner_uid.as_deref() == Some(&*set.metadata.uid));
    own.filter(|view| !in_use(view))
        .take(surplus)
        .map(|view| {
            let write = Write::Delete {
                intent: Intent::DeleteRevision,
                target: target(observed, &view.name),
                precondition: Precondition::Uid(view.uid.to_string()),
            };
            Chain::alone(Wave::Cleanup, write, format!("more than {limit} revisions"))
        })
        .collect()
}

fn target(observed: &Observed<'_>, name: &str) -> Target {
    Target {
        resource: ResourceId::REVISIONS,
        namespace: observed.namespace.to_owned(),
        name: name.to_owned(),
    }
}
