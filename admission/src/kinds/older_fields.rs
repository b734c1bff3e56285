//! Fields of the older version that a client names, although its request comes in the newer one.
//!
//! The API server drops them with a warning, and a canary by `partition` becomes a full rollout. What it drops, no
//! webhook sees. But the managed fields of the object say who wrote such a field in the older version before, and
//! who writes now.

use std::collections::BTreeSet;

use kruise_api::convert::{NEWER, OLDER};
use kruise_api::definition::Moved;
use serde_json::Value;

use super::{KindWebhooks, Scope};
use crate::json::{items, text};

/// The warnings about an update. Unlike others they are repeated: each update loses the fields again.
pub(super) fn warnings(kind: &KindWebhooks, object: &Value, scope: &Scope<'_>) -> Vec<String> {
    let Some(old) = scope.old.filter(|_| scope.version == NEWER) else {
        return Vec::new();
    };
    let now = entries(object);
    let before = entries(old);
    let writers: BTreeSet<&str> = now
        .iter()
        .filter(|entry| is_of(entry, NEWER) && !before.contains(entry))
        .map(|entry| text(entry, "manager"))
        .collect();
    let mut written = now.clone();
    written.retain(|entry| writers.contains(text(entry, "manager")));
    if written.is_empty() {
        return Vec::new();
    }
    let moved = kind.kind.moved();
    let named = |one: &Moved| {
        written
            .iter()
            .find(|entry| names(entry, &one.older))
            .map(|entry| text(entry, "manager"))
    };
    let texts = moved.iter().filter_map(|one| Some((one, named(one)?)));
    texts.map(|(one, writer)| warning(kind, one, writer)).collect()
}

fn warning(kind: &KindWebhooks, moved: &Moved, writer: &str) -> String {
    let Moved { older, newer } = moved;
    let place = match newer {
        Some(newer) => format!("in {NEWER} it is {newer}"),
        None => format!("{NEWER} does not have it"),
    };
    let (plural, group) = (kind.kind.plural, kind.kind.group);
    format!(
        "{older}: {writer} has written this field of {OLDER} before, and writes {NEWER} now: {place}, and the API server drops \
         what is written elsewhere; write it there, or name the version: {plural}.{OLDER}.{group}"
    )
}

/// The entries of the managed fields that are about the object itself.
fn entries(object: &Value) -> Vec<&Value> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let entries = items(metadata, "managedFields").iter();
    entries
        .filter(|entry| text(entry, "subresource").is_empty())
        .collect()
}

fn is_of(entry: &Value, version: &str) -> bool {
    text(entry, "apiVersion").rsplit('/').next() == Some(version)
}

/// Does an entry name the field at a dotted path?
fn names(entry: &Value, path: &str) -> bool {
    let mut at = entry.get("fieldsV1");
    for step in path.split('.') {
        at = at.and_then(|at| at.get(format!("f:{step}")));
    }
    at.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::sample;
    use super::*;

    fn entry(manager: &str, version: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": format!("apps.kruise.io/{version}"), "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}})
    }

    fn partition(time: &str) -> Value {
        entry(
            "kubectl-patch",
            OLDER,
            time,
            &json!({"f:updateStrategy": {"f:partition": {}}}),
        )
    }

    fn image(manager: &str, time: &str) -> Value {
        entry(manager, NEWER, time, &json!({"f:template": {}}))
    }

    /// The warnings about an update of a CloneSet from one list of managed fields to another.
    fn warned(old: &Value, new: &Value) -> Vec<String> {
        let (case, object) = sample("CloneSet");
        let with = |fields: &Value| {
            let mut object = object.clone();
            object["metadata"]["managedFields"] = fields.clone();
            object
        };
        case.warnings("UPDATE", &with(new), &with(old))
    }

    #[test]
    fn a_client_that_wrote_fields_of_the_older_version_is_warned_at_each_update_in_the_newer_one() {
        let (first, second) = (image("kubectl-patch", "1"), image("kubectl-patch", "2"));
        for (old, new) in [
            (json!([partition("0")]), json!([partition("0"), first])),
            (json!([partition("0"), first]), json!([partition("0"), second])),
            // a server that keeps the names of what it dropped
            (
                json!([]),
                json!([entry(
                    "kubectl-patch",
                    NEWER,
                    "1",
                    &json!({"f:updateStrategy": {"f:partition": {}}})
                )]),
            ),
        ] {
            let texts = warned(&old, &new);
            assert_eq!(texts.len(), 1, "{texts:?}");
            let start =
                "spec.updateStrategy.partition: kubectl-patch has written this field of v1alpha1 before";
            assert!(texts[0].starts_with(start), "{texts:?}");
            let end = "in v1beta1 it is spec.updateStrategy.rollingUpdate.partition, and the API server drops what is written \
                       elsewhere; write it there, or name the version: clonesets.v1alpha1.apps.kruise.io";
            assert!(texts[0].ends_with(end), "{texts:?}");
        }
    }

    #[test]
    fn other_clients_and_the_right_fields_are_not_warned_of() {
        let right = entry(
            "kubectl-patch",
            NEWER,
            "1",
            &json!({"f:updateStrategy": {"f:rollingUpdate": {"f:partition": {}}}}),
        );
        for (old, new) in [
            (
                json!([partition("0")]),
                json!([partition("0"), image("helm", "1")]),
            ),
            (json!([partition("0")]), json!([partition("1")])),
            (
                json!([partition("0"), image("kubectl-patch", "1")]),
                json!([partition("0"), image("kubectl-patch", "1")]),
            ),
            (json!([]), json!([right])),
            (Value::Null, Value::Null),
        ] {
            assert_eq!(warned(&old, &new), [""; 0], "{new}");
        }
    }
}
