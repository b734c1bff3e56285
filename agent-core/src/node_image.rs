//! The NodeImage of this node: what it is to have, and what was reported of it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kruise_api::meta::null_as_default;
use kruise_views::Labels;
use serde::{Deserialize, Serialize};

use crate::{Sandbox, SecretRef};

/// Seconds that an attempt may take by default.
const TIMEOUT_SECONDS: i32 = 600;
/// Attempts after the first one by default.
const BACKOFF_LIMIT: i32 = 3;

/// The NodeImage of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Wire")]
pub struct NodeImageView {
    /// Name: that of the node.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Is it being deleted?
    pub deleting: bool,
    /// What the node is to have, by names of images without tags.
    pub images: BTreeMap<Box<str>, ImageSpec>,
    /// What was reported last; `None` before the first report.
    pub status: Option<NodeImageStatus>,
}

impl kube_cache::Cached for NodeImageView {
    fn namespace(&self) -> &'static str {
        ""
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn is_terminating(&self) -> bool {
        self.deleting
    }
}

/// An image without its tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageSpec {
    /// Secrets that it may be pulled with, in order.
    pub secrets: Box<[SecretRef]>,
    /// What the sandbox configuration of a pull says.
    pub sandbox: Sandbox,
    /// Its tags.
    pub tags: Box<[TagSpec]>,
}

/// A tag or digest that the node is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagSpec {
    /// Tag, or digest such as `sha256:…`.
    pub tag: Box<str>,
    /// When this round of pulling was requested.
    pub created: Option<Timestamp>,
    /// Number of the round.
    pub version: i64,
    /// The jobs that want it.
    pub owners: Box<[ObjectRef]>,
    /// Is an image that the node has taken as it is (`imagePullPolicy: IfNotPresent`)? Anything else pulls.
    pub if_not_present: bool,
    /// Longest time of one attempt.
    pub timeout: SignedDuration,
    /// Attempts after the first one.
    pub backoff_limit: u32,
    /// Longest time from the first attempt to the end of the last one.
    pub active_deadline: Option<SignedDuration>,
}

/// An object, as an owner is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Group and version.
    #[serde(deserialize_with = "null_as_default")]
    pub api_version: Box<str>,
    /// Kind.
    #[serde(deserialize_with = "null_as_default")]
    pub kind: Box<str>,
    /// Namespace.
    #[serde(deserialize_with = "null_as_default")]
    pub namespace: Box<str>,
    /// Name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: Box<str>,
    /// UID.
    #[serde(deserialize_with = "null_as_default")]
    pub uid: Box<str>,
}

/// What is reported of a node's images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeImageStatus {
    /// Tags that the node is to have.
    #[serde(deserialize_with = "null_as_default")]
    pub desired: i32,
    /// Tags that it has.
    #[serde(deserialize_with = "null_as_default")]
    pub succeeded: i32,
    /// Tags that could not be pulled.
    #[serde(deserialize_with = "null_as_default")]
    pub failed: i32,
    /// Tags that are being pulled.
    #[serde(deserialize_with = "null_as_default")]
    pub pulling: i32,
    /// Tags that wait.
    #[serde(deserialize_with = "null_as_default")]
    pub waiting: i32,
    /// States of the tags, by names of images.
    #[serde(deserialize_with = "null_as_default")]
    pub image_statuses: BTreeMap<Box<str>, ImageStatus>,
    /// How the first set of pulls went; never changed again.
    pub first_sync_status: Option<FirstSync>,
}

/// What is reported of the tags of one image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ImageStatus {
    /// One entry for each tag, sorted by tag.
    #[serde(deserialize_with = "null_as_default")]
    pub tags: Vec<TagStatus>,
}

/// What is reported of a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagStatus {
    /// Tag or digest.
    pub tag: Box<str>,
    /// How far it is.
    pub phase: Phase,
    /// Percent of the image that is there: 0 or 100.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub progress: i32,
    /// When the first attempt of the round began, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When the round ended, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// The round.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "is_zero")]
    pub version: i64,
    /// Name of the image, `@`, and the id that the runtime gave it.
    #[serde(
        rename = "imageID",
        deserialize_with = "null_as_default",
        skip_serializing_if = "str::is_empty"
    )]
    pub image_id: Box<str>,
    /// Why it failed, or waits.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

/// How far a tag is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Phase {
    /// Its first attempt has not begun, or the next one waits for the runtime, for disk space or for a secret.
    #[default]
    Waiting,
    /// It is being pulled.
    Pulling,
    /// The node has it.
    Succeeded,
    /// It could not be pulled.
    Failed,
    /// A phase that this build does not know.
    #[serde(other)]
    Unknown,
}

/// How the first set of pulls of a node went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FirstSync {
    /// When the last of them ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_at: Option<Timestamp>,
    /// `Succeeded`, or `Failed` if one of them failed.
    #[serde(deserialize_with = "null_as_default")]
    pub status: Box<str>,
    /// How many failed; empty if none.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl NodeImageView {
    /// The entry of a tag, and that of its image.
    pub(crate) fn tag(&self, image: &str, tag: &str) -> Option<(&ImageSpec, &TagSpec)> {
        let image = self.images.get(image)?;
        let tag = image.tags.iter().find(|one| &*one.tag == tag)?;
        Some((image, tag))
    }

    /// What was reported of a round that is over.
    pub(crate) fn finished(&self, image: &str, tag: &TagSpec) -> Option<&TagStatus> {
        let statuses = self.status.as_ref()?.image_statuses.get(image)?;
        let mut statuses = statuses.tags.iter();
        statuses.find(|one| one.tag == tag.tag && one.version == tag.version && one.completion_time.is_some())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Metadata,
    spec: Option<Spec>,
    status: Option<NodeImageStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    deletion_timestamp: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    images: Option<BTreeMap<Box<str>, Image>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Image {
    pull_secrets: Option<Vec<Secret>>,
    sandbox_config: Option<SandboxConfig>,
    tags: Option<Vec<Tag>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Secret {
    namespace: Box<str>,
    name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SandboxConfig {
    labels: Labels,
    annotations: Labels,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tag {
    #[serde(rename = "tag")]
    name: Box<str>,
    created_at: Option<Timestamp>,
    version: Option<i64>,
    owner_references: Option<Vec<ObjectRef>>,
    image_pull_policy: Option<Box<str>>,
    pull_policy: Option<PullPolicy>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PullPolicy {
    timeout_seconds: Option<i32>,
    backoff_limit: Option<i32>,
    active_deadline_seconds: Option<i64>,
}

impl From<Wire> for NodeImageView {
    fn from(wire: Wire) -> Self {
        let images = wire.spec.and_then(|spec| spec.images).unwrap_or_default();
        Self {
            name: wire.metadata.name,
            uid: wire.metadata.uid,
            resource_version: wire.metadata.resource_version,
            deleting: wire.metadata.deletion_timestamp.is_some(),
            images: images
                .into_iter()
                .map(|(name, image)| (name, image.into()))
                .collect(),
            status: wire.status,
        }
    }
}

impl From<Image> for ImageSpec {
    fn from(wire: Image) -> Self {
        let secrets = wire.pull_secrets.into_iter().flatten();
        let sandbox = wire.sandbox_config.unwrap_or_default();
        Self {
            secrets: secrets
                .map(|Secret { namespace, name }| SecretRef { namespace, name })
                .collect(),
            sandbox: Sandbox {
                labels: sandbox.labels,
                annotations: sandbox.annotations,
            },
            tags: wire.tags.into_iter().flatten().map(TagSpec::from).collect(),
        }
    }
}

impl From<Tag> for TagSpec {
    fn from(wire: Tag) -> Self {
        let policy = wire.pull_policy.unwrap_or_default();
        let timeout = policy.timeout_seconds.filter(|seconds| *seconds > 0);
        let limit = policy.backoff_limit.and_then(|limit| u32::try_from(limit).ok());
        Self {
            tag: wire.name,
            created: wire.created_at,
            version: wire.version.unwrap_or_default(),
            owners: wire.owner_references.into_iter().flatten().collect(),
            if_not_present: wire.image_pull_policy.as_deref() == Some("IfNotPresent"),
            timeout: SignedDuration::from_secs(timeout.unwrap_or(TIMEOUT_SECONDS).into()),
            backoff_limit: limit.unwrap_or(BACKOFF_LIMIT.unsigned_abs()),
            active_deadline: policy.active_deadline_seconds.map(SignedDuration::from_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(object: Value) -> NodeImageView {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn defaults_stand_in_for_what_a_webhook_would_have_set() {
        let view = read(
            json!({"metadata": {"name": "n1", "uid": "u"}, "spec": {"images": {"nginx": {"tags": [
                {"tag": "1"},
                {"tag": "2", "imagePullPolicy": "IfNotPresent", "version": 4,
                 "pullPolicy": {"timeoutSeconds": 9, "backoffLimit": 0, "activeDeadlineSeconds": 7}},
                {"tag": "3", "imagePullPolicy": "Always", "pullPolicy": {"timeoutSeconds": 0, "backoffLimit": -1}},
            ]}}}}),
        );
        let tags: Vec<_> = view.images["nginx"]
            .tags
            .iter()
            .map(|tag| (tag.if_not_present, tag.timeout.as_secs(), tag.backoff_limit))
            .collect();
        assert_eq!(tags, [(false, 600, 3), (true, 9, 0), (false, 600, 3)]);
        assert_eq!(
            view.tag("nginx", "2").unwrap().1.active_deadline,
            Some(SignedDuration::from_secs(7))
        );
        assert_eq!(view.status, None);
    }

    #[test]
    fn a_tag_is_finished_in_its_own_round_only() {
        let view = read(
            json!({"spec": {"images": {"nginx": {"tags": [{"tag": "1", "version": 2}, {"tag": "2"}]}}},
            "status": {"imageStatuses": {"nginx": {"tags": [
                {"tag": "1", "phase": "Succeeded", "version": 1, "completionTime": "2026-01-01T00:00:00Z"},
                {"tag": "2", "phase": "Newer", "completionTime": "2026-01-01T00:00:00Z", "progress": null}]}}}}),
        );
        let image = &view.images["nginx"];
        assert_eq!(view.finished("nginx", &image.tags[0]), None);
        assert_eq!(
            view.finished("nginx", &image.tags[1]).unwrap().phase,
            Phase::Unknown
        );
    }

    #[test]
    fn an_object_without_anything_is_read() {
        for object in [
            json!({"metadata": {"name": "n1"}}),
            json!({"metadata": {"name": "n1"}, "spec": {"images": null}, "status": null}),
            json!({"metadata": {"name": "n1"}, "spec": {"images": {"a": {"tags": null}}}}),
        ] {
            assert_eq!(&*read(object).name, "n1");
        }
    }

    #[test]
    fn what_is_written_leaves_out_what_is_empty() {
        let status = TagStatus {
            tag: "1".into(),
            start_time: Timestamp::from_second(0).ok(),
            ..TagStatus::default()
        };
        assert_eq!(
            serde_json::to_value(status).unwrap(),
            json!({"tag": "1", "phase": "Waiting", "startTime": "1970-01-01T00:00:00Z"})
        );
    }
}
