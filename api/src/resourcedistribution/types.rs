//! The fields.

use go_compat::{json, sha256};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::convert::convert_to_newer;
use crate::meta::{LabelSelector, ObjectMeta, null_as_default, whole_seconds};
use crate::parse::Parse;

/// A ResourceDistribution as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDistribution {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: ResourceDistributionSpec,
    /// Last reported state.
    #[serde(deserialize_with = "null_as_default")]
    pub status: ResourceDistributionStatus,
    /// SHA-256 of `spec.resource` in the bytes that the API server sends, in hexadecimal digits. Copies have it in an
    /// annotation.
    #[serde(skip)]
    pub resource_hash: String,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDistributionSpec {
    /// The Secret or ConfigMap, as its author wrote it.
    pub resource: Value,
    /// The namespaces that get a copy.
    #[serde(deserialize_with = "null_as_default")]
    pub targets: Targets,
}

/// Namespaces that get a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Targets {
    /// All namespaces.
    #[serde(deserialize_with = "null_as_default")]
    pub all_namespaces: bool,
    /// Namespaces that get none, whatever else selects them.
    #[serde(deserialize_with = "null_as_default")]
    pub excluded_namespaces: Namespaces,
    /// Namespaces by name. They need not exist.
    #[serde(deserialize_with = "null_as_default")]
    pub included_namespaces: Namespaces,
    /// Namespaces by labels. An empty selector selects none.
    #[serde(deserialize_with = "null_as_default")]
    pub namespace_selector: LabelSelector,
}

/// Names of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Namespaces {
    #[serde(deserialize_with = "null_as_default")]
    list: Vec<Namespace>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Namespace {
    name: String,
}

impl Namespaces {
    /// The names, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|namespace| namespace.name.as_str())
    }

    /// Is this one listed?
    pub fn contains(&self, name: &str) -> bool {
        self.names().any(|listed| listed == name)
    }
}

/// Reported state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDistributionStatus {
    /// Namespaces that are to have a copy.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub desired: i32,
    /// Those that have one as it is to be.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub succeeded: i32,
    /// Those that do not.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// Generation of the specification that the numbers belong to.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// The ways in which copying can fail.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<DistributionCondition>,
}

/// One way in which copying can fail, and where it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DistributionCondition {
    /// Which way.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` where it has failed in this way.
    pub status: String,
    /// When `status` last changed.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// One of the errors, or `Succeeded`.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub reason: String,
    /// Namespaces where it has failed in this way, sorted.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub failed_namespaces: Vec<String>,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl ResourceDistribution {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(mut object: Value) -> Result<Self, String> {
        let version = convert_to_newer(&KIND, &mut object)?;
        let mut distribution = Self::deserialize(object).map_err(|error| error.to_string())?;
        distribution.api_version = version;
        let resource = json::to_go_json(&distribution.spec.resource);
        distribution.resource_hash = sha256::hex(resource.as_bytes());
        Ok(distribution)
    }
}

impl Parse for ResourceDistribution {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_are_read_alike() {
        for (version, selector, failed) in [
            ("v1alpha1", "namespaceLabelSelector", "failedNamespace"),
            ("v1beta1", "namespaceSelector", "failedNamespaces"),
        ] {
            let api_version = format!("apps.kruise.io/{version}");
            let distribution = ResourceDistribution::from_value(json!({
                "apiVersion": api_version, "kind": "ResourceDistribution", "metadata": {"name": "pull"},
                "spec": {
                    "resource": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "reg"}, "newer": 1},
                    "targets": {selector: {"matchLabels": {"team": "web"}}, "excludedNamespaces": {"list": null},
                        "includedNamespaces": {"list": [{"name": "tools"}]}},
                },
                "status": {"desired": 1, "conditions": [{"type": "ConflictOccurred", "status": "True", failed: ["a"]}]},
            }))
            .unwrap();
            let targets = &distribution.spec.targets;
            assert_eq!(*distribution.api_version, *api_version);
            assert_eq!(targets.namespace_selector.match_labels["team"], "web");
            assert!(targets.included_namespaces.contains("tools") && !targets.all_namespaces);
            assert_eq!(targets.excluded_namespaces.names().count(), 0);
            assert_eq!(distribution.status.conditions[0].failed_namespaces, ["a"]);
            assert_eq!(distribution.spec.resource["newer"], 1);
        }
    }

    #[test]
    fn the_hash_is_that_of_the_bytes_which_the_server_sends() {
        let distribution = ResourceDistribution::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "spec": {"resource": {"kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"k": "<v>"}, "apiVersion": "v1"}},
        }))
        .unwrap();
        let sent = r#"{"apiVersion":"v1","data":{"k":"\u003cv\u003e"},"kind":"ConfigMap","metadata":{"name":"shared"}}"#;
        assert_eq!(distribution.resource_hash, sha256::hex(sent.as_bytes()));
        assert_eq!(distribution.resource_hash.len(), 64);
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| ResourceDistribution::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "batch/v1"})).contains("batch/v1"));
        let wrong =
            json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"targets": {"allNamespaces": "yes"}}});
        assert!(error(wrong).contains("boolean"));
    }
}
