//! The storage versions of a CustomResourceDefinition.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use kruise_api::path::segment;
use kruise_runtime::Client;
use serde_json::{Value, json};

use kruise_api::path::DEFINITIONS;

/// Groups of OpenKruise.
const GROUPS: [&str; 2] = ["apps.kruise.io", "policy.kruise.io"];

/// A definition, with the fields about storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    /// Name of the definition.
    pub(super) name: String,
    /// Differs for another definition of the same name.
    pub(super) uid: String,
    /// Precondition of writes.
    pub(super) resource_version: String,
    /// Changes whenever the stored version does.
    pub(super) generation: i64,
    /// Names of the versions, in order.
    pub(super) versions: Vec<String>,
    /// The version in which objects are stored now.
    pub(super) storage: String,
    /// Versions that objects may be stored in.
    pub(super) stored: Vec<String>,
    /// Group and kind of the objects.
    pub(super) group: String,
    pub(super) kind: String,
    /// Name of the objects in paths.
    pub(super) plural: String,
    /// Names by which clients ask for the objects, in lower case: plural, singular, kind and short names. The short
    /// names are those of the definition and those of this build.
    pub(super) names: BTreeSet<String>,
    served: Vec<String>,
}

impl Definition {
    /// Reads a definition of OpenKruise; `None` for any other.
    pub(super) fn read(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer)?.as_str().map(str::to_owned);
        let group = text("/spec/group").filter(|group| GROUPS.contains(&group.as_str()))?;
        let versions = object.pointer("/spec/versions")?.as_array()?;
        let named = |flag: &str| -> Vec<String> {
            let chosen = versions
                .iter()
                .filter(|version| flag.is_empty() || version.get(flag) == Some(&Value::Bool(true)));
            chosen
                .filter_map(|version| version.get("name")?.as_str().map(str::to_owned))
                .collect()
        };
        let stored = object.pointer("/status/storedVersions").and_then(Value::as_array);
        let (kind, plural) = (text("/spec/names/kind")?, text("/spec/names/plural")?);
        let short = object.pointer("/spec/names/shortNames").and_then(Value::as_array);
        let short = short.into_iter().flatten().filter_map(Value::as_str);
        let ours = kruise_kinds::kinds()
            .iter()
            .find(|kind| kind.group == group && kind.plural == plural)
            .map_or(&[][..], |kind| kind.short_names);
        let singular = text("/spec/names/singular");
        let names = [&kind, &plural]
            .into_iter()
            .chain(&singular)
            .map(String::as_str)
            .chain(short)
            .chain(ours.iter().copied())
            .map(str::to_lowercase)
            .collect();
        Some(Self {
            name: text("/metadata/name")?,
            uid: text("/metadata/uid")?,
            resource_version: text("/metadata/resourceVersion")?,
            generation: object
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            versions: named(""),
            storage: named("storage").into_iter().next()?,
            stored: stored
                .into_iter()
                .flatten()
                .filter_map(|version| version.as_str().map(str::to_owned))
                .collect(),
            group,
            kind,
            plural,
            names,
            served: named("served"),
        })
    }

    /// Fails if there is no such version.
    pub(super) fn check_version(&self, version: &str) -> anyhow::Result<()> {
        if self.versions.iter().any(|have| have == version) {
            return Ok(());
        }
        bail!(
            "{} has no version {version}, only {}",
            self.name,
            self.versions.join(", ")
        )
    }

    /// True if all objects are stored in the current storage version.
    pub(super) fn is_settled(&self) -> bool {
        self.stored == [self.storage.as_str()]
    }

    /// True if it is the same definition, unchanged since `before`.
    pub(super) fn is_unchanged_since(&self, before: &Self) -> bool {
        (&self.uid, &self.storage, self.generation) == (&before.uid, &before.storage, before.generation)
    }

    /// Versions that no object is stored in any more once all are rewritten.
    pub(super) fn outdated(&self) -> impl Iterator<Item = &str> {
        let stored = self.stored.iter().map(String::as_str);
        stored.filter(|version| *version != self.storage)
    }

    /// The version for requests: the stored one, if it is served, or else any served one.
    pub(super) fn request_version(&self) -> Option<&str> {
        let stored = self.served.iter().find(|version| **version == self.storage);
        stored.or(self.served.first()).map(String::as_str)
    }

    /// Path of all objects; `None` if no version is served.
    pub(super) fn list_path(&self) -> Option<String> {
        Some(format!(
            "/apis/{}/{}/{}",
            self.group,
            self.request_version()?,
            self.plural
        ))
    }

    /// Path of one object.
    pub(super) fn object_path(&self, namespace: &str, name: &str) -> Option<String> {
        let (group, version, plural) = (&self.group, self.request_version()?, &self.plural);
        let (is_clustered, namespace, name) = (namespace.is_empty(), segment(namespace), segment(name));
        Some(if is_clustered {
            format!("/apis/{group}/{version}/{plural}/{name}")
        } else {
            format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}")
        })
    }

    /// Path of the definition itself.
    pub(super) fn path(&self) -> String {
        path(&self.name)
    }

    /// JSON Patch that makes `version` the stored one; `None` if there is no such version.
    pub(super) fn storing(&self, version: &str) -> Option<Value> {
        if !self.versions.iter().any(|have| have == version) {
            return None;
        }
        let mut patch =
            vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": self.resource_version})];
        for (index, name) in self.versions.iter().enumerate() {
            let path = format!("/spec/versions/{index}/storage");
            patch.push(json!({"op": "replace", "path": path, "value": name == version}));
        }
        Some(Value::Array(patch))
    }

    /// Merge patch of the status: no other version is stored.
    pub(super) fn settled(&self) -> Value {
        json!({
            "metadata": {"resourceVersion": self.resource_version},
            "status": {"storedVersions": [self.storage]},
        })
    }
}

/// All definitions of OpenKruise.
pub(super) async fn all(client: &Client) -> anyhow::Result<Vec<Definition>> {
    let list: Value = client
        .get(DEFINITIONS)
        .await
        .context("cannot list the definitions")?;
    let items = list.get("items").and_then(Value::as_array);
    Ok(items.into_iter().flatten().filter_map(Definition::read).collect())
}

/// Path of a definition.
pub(super) fn path(name: &str) -> String {
    format!("{DEFINITIONS}/{}", segment(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"name": "clonesets.apps.kruise.io", "uid": "u", "resourceVersion": "7", "generation": 2},
            "spec": {"group": "apps.kruise.io", "names": {"plural": "clonesets", "kind": "CloneSet"}, "versions": [
                {"name": "v1alpha1", "served": true, "storage": false},
                {"name": "v1beta1", "served": true, "storage": true},
            ]},
            "status": {"storedVersions": ["v1alpha1", "v1beta1"]},
        })
    }

    #[test]
    fn only_our_own_definitions_are_read() {
        let mut object = object();
        assert!(Definition::read(&object).is_some());
        object["spec"]["group"] = json!("example.com");
        assert_eq!(Definition::read(&object), None);
    }

    #[test]
    fn objects_are_listed_in_the_stored_version_or_else_in_a_served_one() {
        let mut object = object();
        let list = |object: &Value| Definition::read(object).unwrap().list_path();
        assert_eq!(list(&object).unwrap(), "/apis/apps.kruise.io/v1beta1/clonesets");
        object["spec"]["versions"][1]["served"] = json!(false);
        assert_eq!(list(&object).unwrap(), "/apis/apps.kruise.io/v1alpha1/clonesets");
        object["spec"]["versions"][0]["served"] = json!(false);
        assert_eq!(list(&object), None);
    }

    #[test]
    fn a_definition_is_settled_when_nothing_else_may_be_stored() {
        let mut object = object();
        assert!(!Definition::read(&object).unwrap().is_settled());
        object["status"]["storedVersions"] = json!(["v1beta1"]);
        assert!(Definition::read(&object).unwrap().is_settled());
        object["status"]["storedVersions"] = json!(["v1alpha1"]);
        assert!(!Definition::read(&object).unwrap().is_settled());
    }

    #[test]
    fn the_stored_version_changes_only_to_an_existing_one_and_under_a_precondition() {
        let definition = Definition::read(&object()).unwrap();
        let patch = definition.storing("v1alpha1").unwrap();
        assert_eq!(patch[0]["value"], "7");
        assert_eq!(
            (&patch[1]["value"], &patch[2]["value"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(definition.storing("v1"), None);
    }

    #[test]
    fn a_change_of_the_stored_version_and_back_is_detected() {
        let before = Definition::read(&object()).unwrap();
        let mut later = object();
        later["metadata"]["resourceVersion"] = json!("9");
        assert!(Definition::read(&later).unwrap().is_unchanged_since(&before));
        later["metadata"]["generation"] = json!(4);
        assert!(!Definition::read(&later).unwrap().is_unchanged_since(&before));
    }
}
