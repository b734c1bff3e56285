//! Claims of stateful sets: one for each ordinal and template, which outlive their pods.
//!
//! `persistentVolumeClaimRetentionPolicy` is carried out by owner references: a set that takes its claims with it owns
//! them, and so does a condemned pod whose claim is to go.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::set::Set;
use crate::controllers::objects::reference;
use crate::object::{at, get_metadata, metadata_text};
use crate::store::{Key, ResourceId};
use crate::validation::text;
use crate::world::Client;

fn templates(object: &Value) -> impl Iterator<Item = &Value> {
    let templates = at(object, "/spec/volumeClaimTemplates").and_then(Value::as_array);
    templates.into_iter().flatten()
}

fn key(set: &Set<'_>, template: &Value, ordinal: i64) -> Key {
    let name = format!("{}-{}-{ordinal}", metadata_text(template, "name"), set.key.name);
    Key::new(&set.key.namespace, &name)
}

fn get(client: &Client<'_>, key: &Key) -> Option<Arc<Value>> {
    let id = ResourceId {
        group: "".into(),
        plural: "persistentvolumeclaims".into(),
    };
    Some(client.api.store.get(&id, key)?.value())
}

/// The volumes of a pod: those of its claims, and the template's of other names.
pub(super) fn volumes(set: &Set<'_>, ordinal: i64, others: Option<&Value>) -> Value {
    let own = templates(set.object).map(|template| {
        let claim = key(set, template, ordinal);
        json!({"name": metadata_text(template, "name"), "persistentVolumeClaim": {"claimName": claim.name.as_ref()}})
    });
    let is_own = |volume: &Value| {
        templates(set.object).any(|template| metadata_text(template, "name") == text(volume, "name"))
    };
    let others = others.and_then(Value::as_array).into_iter().flatten();
    own.chain(others.filter(|volume| !is_own(volume)).cloned())
        .collect()
}

/// Makes the claims of an ordinal that are missing. Returns false if one is there that is to be deleted first.
pub(super) fn ensure(client: &mut Client<'_>, set: &Set<'_>, ordinal: i64) -> bool {
    for template in templates(set.object) {
        let claim = key(set, template, ordinal);
        if let Some(found) = get(client, &claim) {
            let is_of_earlier_pod = owners(&found).any(|one| is_pod(one, set, ordinal));
            if is_of_earlier_pod && !set.pods.contains_key(&ordinal)
                || !get_metadata(&found, "deletionTimestamp").is_null()
            {
                return false;
            }
            continue;
        }
        let mut labels: Map<String, Value> = Map::new();
        let selected = at(set.object, "/spec/selector/matchLabels");
        for more in [Some(get_metadata(template, "labels")), selected] {
            labels.extend(more.and_then(Value::as_object).cloned().unwrap_or_default());
        }
        let object = json!({
            "metadata": {"name": claim.name.as_ref(), "labels": labels,
                "annotations": get_metadata(template, "annotations"),
                "ownerReferences": owner(set, None).into_iter().collect::<Vec<_>>()},
            "spec": template.get("spec"),
        });
        client.post(
            &format!("/api/v1/namespaces/{}/persistentvolumeclaims", claim.namespace),
            &object,
        );
    }
    true
}

/// Makes the owners of an ordinal's claims those of the policy.
pub(super) fn own(client: &mut Client<'_>, set: &Set<'_>, ordinal: i64, condemned: Option<&Value>) {
    let wanted = owner(set, condemned);
    let is_ours =
        |one: &Value| text(one, "uid") == metadata_text(set.object, "uid") || is_pod(one, set, ordinal);
    for template in templates(set.object) {
        let claim = key(set, template, ordinal);
        let Some(found) = get(client, &claim) else {
            continue;
        };
        let kept = owners(&found).filter(|one| !is_ours(one));
        let next: Vec<&Value> = kept.chain(&wanted).collect();
        if !owners(&found).eq(next.iter().copied()) {
            let path = format!(
                "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
                claim.namespace, claim.name
            );
            client.merge(&path, &json!({"metadata": {"ownerReferences": next}}));
        }
    }
}

/// Who takes a claim with it.
fn owner(set: &Set<'_>, condemned: Option<&Value>) -> Option<Value> {
    let deletes = |when: &str| {
        let policy = at(set.object, "/spec/persistentVolumeClaimRetentionPolicy");
        policy.is_some_and(|policy| text(policy, when) == "Delete")
    };
    match condemned.filter(|_| deletes("whenScaled")) {
        Some(pod) => Some(
            json!({"apiVersion": "v1", "kind": "Pod", "name": metadata_text(pod, "name"),
                "uid": metadata_text(pod, "uid"), "controller": true, "blockOwnerDeletion": true}),
        ),
        None => deletes("whenDeleted").then(|| reference(set.object, "StatefulSet")),
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    let owners = get_metadata(object, "ownerReferences").as_array();
    owners.into_iter().flatten()
}

/// Whether a reference is to a pod of this ordinal, whichever.
fn is_pod(reference: &Value, set: &Set<'_>, ordinal: i64) -> bool {
    text(reference, "kind") == "Pod" && text(reference, "name") == set.pod_key(ordinal).name.as_ref()
}
