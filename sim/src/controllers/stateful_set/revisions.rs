//! The history of a set's templates, in objects that have the names and bytes that the real controller gives them.

use std::collections::BTreeSet;

use go_compat::pod_template::revision_data;
use go_compat::revision::{revision_hash, revision_name};
use serde_json::{Value, json};

use super::set::{Set, revision};
use crate::controllers::objects::{controlled, number, reference};
use crate::object::{at, get_metadata};
use crate::store::Key;
use crate::world::Client;

/// The revisions between which a set is.
pub(super) struct Revisions {
    /// The revision that an update started from: its name and its template.
    pub(super) current: String,
    pub(super) template: Value,
    /// The name of the revision of the set's template.
    pub(super) update: String,
}

fn path(key: &Key) -> String {
    format!(
        "/apis/apps/v1/namespaces/{}/controllerrevisions/{}",
        key.namespace, key.name
    )
}

/// The data of a template's revision. The real controller leaves out times that are not set, unlike older ones, and
/// OpenKruise.
fn data_of(template: &Value) -> String {
    // Quotes inside of a string are escaped: this is a member wherever it is found.
    let unset = "\"creationTimestamp\":null";
    let data = revision_data(template).replace(&format!("{unset},"), "");
    data.replace(unset, "")
}

/// Makes the revision of a set's template, or gives an earlier one the newest number.
pub(super) fn ensure(client: &mut Client<'_>, key: &Key, set: &Value) -> Revisions {
    let template = at(set, "/spec/template").cloned().unwrap_or_default();
    let data = data_of(&template);
    let hash = revision_hash(data.as_bytes(), Some(0));
    let update = revision_name(&key.name, &hash);
    let all = controlled(client.api, set, "apps", "controllerrevisions");
    let numbers = all.iter().map(|(_, one)| number(one, "/revision"));
    let newest = numbers.max().unwrap_or_default();
    match all.iter().find(|(one, _)| one.name.as_ref() == update) {
        Some((one, found)) if number(found, "/revision") < newest => {
            client.merge(&path(one), &json!({"revision": newest + 1}));
        }
        Some(_) => {}
        None => {
            let mut labels = get_metadata(&template, "labels").clone();
            if let Value::Object(labels) = &mut labels {
                labels.insert("controller.kubernetes.io/hash".into(), hash.into());
            }
            let data: Value = serde_json::from_str(&data).unwrap_or_default();
            let made = json!({
                "metadata": {"name": update, "labels": labels, "annotations": get_metadata(set, "annotations"),
                    "ownerReferences": [reference(set, "StatefulSet")]},
                "data": data, "revision": newest + 1,
            });
            let namespace = &key.namespace;
            client.post(
                &format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions"),
                &made,
            );
        }
    }
    let current = at(set, "/status/currentRevision").and_then(Value::as_str);
    let current = current.and_then(|name| all.iter().find(|(one, _)| one.name.as_ref() == name));
    let Some((one, found)) = current else {
        return Revisions {
            current: update.clone(),
            template,
            update,
        };
    };
    let mut before = at(found, "/data/spec/template").cloned().unwrap_or_default();
    if let Value::Object(members) = &mut before {
        members.remove("$patch");
    }
    Revisions {
        current: one.name.to_string(),
        template: before,
        update,
    }
}

/// Drops revisions beyond the history limit that nothing is of, the oldest first.
pub(super) fn prune(client: &mut Client<'_>, set: &Set<'_>, revisions: &Revisions) {
    let mut live: BTreeSet<&str> = set.pods.values().map(|pod| revision(pod)).collect();
    live.extend([revisions.current.as_str(), revisions.update.as_str()]);
    let mut idle = controlled(client.api, set.object, "apps", "controllerrevisions");
    idle.retain(|(key, _)| !live.contains(key.name.as_ref()));
    idle.sort_by_key(|(key, one)| (number(one, "/revision"), key.clone()));
    let limit = number(set.object, "/spec/revisionHistoryLimit").max(0) as usize;
    let beyond = idle.len().saturating_sub(limit);
    for (key, _) in idle.iter().take(beyond) {
        client.delete(&path(key), &json!({}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kubernetes 1.34 stored this set and its revision.
    #[test]
    fn a_revision_has_the_hash_that_the_real_controller_gave_it() {
        let stored = |file: &str| -> Vec<Value> {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/upstream/1.8.4");
            serde_json::from_str(&std::fs::read_to_string(format!("{folder}/{file}")).unwrap()).unwrap()
        };
        let sets = stored("rest-statefulsets.apps.json");
        assert!(!sets.is_empty());
        for set in sets {
            let data = data_of(&set["spec"]["template"]);
            let name = get_metadata(&set, "name").as_str().unwrap();
            let update = revision_name(name, &revision_hash(data.as_bytes(), Some(0)));
            assert_eq!(set["status"]["updateRevision"], update);
            let revisions = stored("rest-controllerrevisions.json");
            let revision = revisions.iter().find(|one| one["metadata"]["name"] == update);
            let stored: Value = serde_json::from_str(&data).unwrap();
            assert_eq!(revision.unwrap()["data"], stored);
        }
    }
}
