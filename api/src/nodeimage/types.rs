//! The fields.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::KIND;
use crate::parse::Parse;
use crate::{
    convert::{NEWER, OLDER},
    meta::{ObjectMeta, null_as_default, whole_seconds},
};

/// A NodeImage as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeImage {
    /// `apiVersion` it was read in.
    pub api_version: String,
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// `spec.images` by their names, without tags.
    pub images: BTreeMap<String, Image>,
    /// Last reported state.
    pub status: NodeImageStatus,
}

/// An entry of `spec.images`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// The whole entry as it is stored, in the version it was read in: what is written is made from it, so that unknown
    /// fields survive.
    pub stored: Arc<Value>,
    /// Its tags, in the order in which they are stored.
    pub tags: Vec<ImageTag>,
    /// The secrets that the node may pull it with.
    pub pull_secrets: Vec<SecretReference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ImageFields {
    #[serde(deserialize_with = "null_as_default")]
    tags: Vec<ImageTag>,
    #[serde(deserialize_with = "null_as_default")]
    pull_secrets: Vec<SecretReference>,
}

/// A tag or digest of an image that the node is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageTag {
    /// Tag, or digest such as `sha256:…`.
    pub tag: String,
    /// When the current round of pulling was requested.
    pub created_at: Option<Timestamp>,
    /// Number of the round.
    #[serde(deserialize_with = "null_as_default")]
    pub version: i64,
    /// Who wants the tag.
    #[serde(deserialize_with = "null_as_default")]
    pub owner_references: Vec<ObjectReference>,
    /// How long a pull may take, and how long the tag is kept.
    #[serde(deserialize_with = "null_as_default")]
    pub pull_policy: TagPullPolicy,
}

/// An object that wants a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Group and version.
    #[serde(deserialize_with = "null_as_default")]
    pub api_version: String,
    /// Kind.
    #[serde(deserialize_with = "null_as_default")]
    pub kind: String,
    /// Namespace.
    #[serde(deserialize_with = "null_as_default")]
    pub namespace: String,
    /// Name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// UID.
    #[serde(deserialize_with = "null_as_default")]
    pub uid: String,
}

impl ObjectReference {
    /// Does it name an object of this kind, in whatever version?
    pub fn is_of(&self, kind: &crate::definition::Kind) -> bool {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        group == kind.group && self.kind == kind.kind
    }
}

/// A secret that a node may pull an image with.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(default)]
pub struct SecretReference {
    /// Namespace.
    #[serde(deserialize_with = "null_as_default")]
    pub namespace: String,
    /// Name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// `batch`: a copy that is shared by many jobs. Only `v1beta1` has it.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub mode: String,
}

impl SecretReference {
    /// Mode of a copy that is shared by many jobs.
    pub const BATCH: &str = "batch";

    /// Do both name the same secret?
    pub fn is_same(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.name == other.name
    }
}

/// How long a pull may take, and how long the tag is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagPullPolicy {
    /// Seconds after [`ImageTag::created_at`] when all attempts have failed.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after the end of the pull when the tag is removed.
    pub ttl_seconds_after_finished: Option<i32>,
}

/// Reported state. The node agent writes most of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeImageStatus {
    /// Tags that the node has to have.
    #[serde(deserialize_with = "null_as_default")]
    pub desired: i32,
    /// Tags that it has pulled.
    #[serde(deserialize_with = "null_as_default")]
    pub succeeded: i32,
    /// Tags that it could not pull.
    #[serde(deserialize_with = "null_as_default")]
    pub failed: i32,
    /// Tags that it is pulling.
    #[serde(deserialize_with = "null_as_default")]
    pub pulling: i32,
    /// States of the tags, by the names of their images.
    #[serde(deserialize_with = "null_as_default")]
    pub image_statuses: BTreeMap<String, ImageStatus>,
}

/// States of the tags of one image.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ImageStatus {
    /// One for each tag.
    #[serde(deserialize_with = "null_as_default")]
    pub tags: Vec<TagStatus>,
}

/// How pulling one tag goes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagStatus {
    /// Tag or digest.
    pub tag: String,
    /// `Waiting`, `Pulling`, `Succeeded` or `Failed`.
    #[serde(deserialize_with = "null_as_default")]
    pub phase: String,
    /// When the pull ended for good.
    #[serde(serialize_with = "whole_seconds", skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// The round that it is about.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub version: i64,
    /// Why the pull failed or waits.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub message: String,
    /// All other members, as they are stored.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl TagStatus {
    /// Phase of a pull that has not begun.
    pub const WAITING: &str = "Waiting";
    /// Phase of a pull under way.
    pub const PULLING: &str = "Pulling";
    /// Phase of a tag that the node has.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Phase of a tag that could not be pulled.
    pub const FAILED: &str = "Failed";

    /// Has the node the image?
    pub fn has_succeeded(&self) -> bool {
        self.phase == Self::SUCCEEDED
    }

    /// Could the node not pull the image?
    pub fn has_failed(&self) -> bool {
        self.phase == Self::FAILED
    }
}

impl NodeImage {
    /// A tag of an image.
    pub fn tag(&self, image: &str, tag: &str) -> Option<&ImageTag> {
        let tags = self.images.get(image)?.tags.iter();
        tags.into_iter().find(|one| one.tag == tag)
    }

    /// The reported state of a tag, whatever round it is about.
    pub fn tag_status(&self, image: &str, tag: &str) -> Option<&TagStatus> {
        let tags = self.status.image_statuses.get(image)?.tags.iter();
        tags.into_iter().find(|one| one.tag == tag)
    }

    /// The reported state of the current round of a tag.
    pub fn round(&self, image: &str, tag: &ImageTag) -> Option<&TagStatus> {
        self.tag_status(image, &tag.tag)
            .filter(|status| status.version == tag.version)
    }

    /// Reads an object of either version. Entries of `spec.images` are kept as they are.
    ///
    /// # Errors
    /// In plain words, if the version is not served, or a field has another type.
    pub fn from_value(object: Value) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[derive(Default)]
        struct Wire {
            api_version: String,
            metadata: ObjectMeta,
            #[serde(deserialize_with = "null_as_default")]
            spec: Spec,
            #[serde(deserialize_with = "null_as_default")]
            status: NodeImageStatus,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Spec {
            #[serde(deserialize_with = "null_as_default")]
            images: BTreeMap<String, Value>,
        }
        let wire = Wire::deserialize(object).map_err(|error| error.to_string())?;
        let mut versions = [OLDER, NEWER].into_iter();
        if !versions.any(|version| wire.api_version == format!("{}/{version}", KIND.group)) {
            return Err(format!("{:?} is no version of {}", wire.api_version, KIND.kind));
        }
        let images = wire.spec.images.into_iter().map(|(name, stored)| {
            let fields = ImageFields::deserialize(&stored);
            let fields = fields.map_err(|error| format!("spec.images[{name}]: {error}"))?;
            let image = Image {
                stored: Arc::new(stored),
                tags: fields.tags,
                pull_secrets: fields.pull_secrets,
            };
            Ok((name, image))
        });
        Ok(Self {
            images: images.collect::<Result<_, String>>()?,
            api_version: wire.api_version,
            metadata: wire.metadata,
            status: wire.status,
        })
    }
}

impl Parse for NodeImage {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(version: &str) -> Value {
        json!({
            "apiVersion": format!("apps.kruise.io/{version}"), "kind": "NodeImage", "metadata": {"name": "n1"},
            "spec": {"images": {"nginx": {"newer": 1, "pullSecrets": [{"namespace": "a", "name": "b"}], "tags": [
                {"tag": "1", "createdAt": "2026-01-01T00:00:00Z", "version": 2, "ownerReferences": null, "newer": 2}]}}},
            "status": {"desired": 1, "imageStatuses": {"nginx": {"tags": [
                {"tag": "1", "phase": "Pulling", "progress": 0, "newer": 3}]}}},
        })
    }

    #[test]
    fn both_versions_are_read_alike_and_entries_stay_as_they_are_stored() {
        for version in ["v1alpha1", "v1beta1"] {
            let node = NodeImage::from_value(stored(version)).unwrap();
            let image = &node.images["nginx"];
            assert_eq!(*image.stored, stored(version)["spec"]["images"]["nginx"]);
            let tag = node.tag("nginx", "1").unwrap();
            assert_eq!((tag.version, tag.owner_references.len()), (2, 0));
            assert_eq!(node.round("nginx", tag), None, "of another round");
            let status = node.tag_status("nginx", "1").unwrap();
            let written = serde_json::to_value(status).unwrap();
            assert_eq!(
                written,
                json!({"tag": "1", "phase": "Pulling", "progress": 0, "newer": 3})
            );
        }
    }

    #[test]
    fn a_node_without_images_or_policies_is_read() {
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "n1"}, "spec": {}});
        assert!(NodeImage::from_value(object).unwrap().images.is_empty());
        let mut object = stored("v1beta1");
        object["spec"]["images"]["nginx"]["tags"][0]["pullPolicy"] = Value::Null;
        let node = NodeImage::from_value(object).unwrap();
        assert_eq!(
            node.tag("nginx", "1").unwrap().pull_policy,
            TagPullPolicy::default()
        );
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| NodeImage::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "v1"})).contains("\"v1\""));
        let mut object = stored("v1beta1");
        object["spec"]["images"]["nginx"]["tags"] = json!(1);
        assert!(error(object).starts_with("spec.images[nginx]: "));
    }
}
