//! Requests as data, and the part of a response that the executor reads.

use kruise_api::meta::{StringMap, null_as_default};
use kruise_plan_kit::injected::is_injected;
use kruise_plan_kit::{Part, Precondition, Target};
use serde::Deserialize;
use serde_json::Value;

/// Identifies a call of a run, so that its response can be assigned to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// POST.
    Create {
        /// Which object.
        target: Target,
        /// The rendered object.
        body: Value,
    },
    /// GET, to read the owner of an existing object, another object that a precondition is about, or what one compares.
    Get {
        /// Which object.
        target: Target,
        /// JSON pointer of the value to read beside the metadata, if any.
        value: Option<String>,
    },
    /// PATCH.
    Patch {
        /// Which object.
        target: Target,
        /// Which endpoint.
        part: Part,
        /// `Content-Type`.
        content_type: &'static str,
        /// The patch, preconditions included.
        body: Value,
    },
    /// DELETE.
    Delete {
        /// Which object.
        target: Target,
        /// `DeleteOptions`, preconditions included.
        body: Value,
    },
}

impl Call {
    /// The object of the call.
    pub fn target(&self) -> &Target {
        match self {
            Self::Create { target, .. }
            | Self::Get { target, .. }
            | Self::Patch { target, .. }
            | Self::Delete { target, .. } => target,
        }
    }
}

/// `DeleteOptions` for a deletion with the object's own grace period.
pub(crate) fn delete_options(precondition: &Precondition, previous_version: Option<&str>) -> Value {
    let version = match precondition {
        Precondition::UidAndVersion(_, version) | Precondition::Owned { version, .. } => {
            Some(version.as_str())
        }
        Precondition::VersionFromPreviousStep(_) => previous_version,
        Precondition::Uid(_) | Precondition::Unused(..) | Precondition::Test(..) => None,
    };
    let mut guards = serde_json::Map::new();
    if let Some(uid) = precondition.uid().filter(|_| !is_injected("UidDropped")) {
        guards.insert("uid".into(), uid.into());
    }
    if let Some(version) = version {
        guards.insert("resourceVersion".into(), version.into());
    }
    let mut options = serde_json::Map::new();
    options.insert("kind".into(), "DeleteOptions".into());
    options.insert("apiVersion".into(), "v1".into());
    options.insert("propagationPolicy".into(), "Background".into());
    options.insert("preconditions".into(), guards.into());
    if is_injected("GraceOfPodsDropped") {
        options.insert("gracePeriodSeconds".into(), 0.into());
    }
    options.into()
}

/// The metadata that the executor reads from a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// `metadata.name`; empty if the response is a `Status`.
    pub name: String,
    /// `metadata.labels`.
    pub labels: StringMap,
    /// `metadata.uid`; empty if the response is a `Status`.
    pub uid: String,
    /// `metadata.resourceVersion`; empty if the response is a `Status`.
    pub version: String,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_terminating: bool,
    /// Uid of the controlling owner.
    pub controller: Option<String>,
    /// Uids of all owners.
    pub owners: Vec<String>,
    /// The value that was to be read; `None` if there is none, or none was asked for.
    pub value: Option<Value>,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    #[serde(deserialize_with = "null_as_default")]
    labels: StringMap,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    uid: String,
    #[serde(default)]
    controller: Option<bool>,
}

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let metadata = Object::deserialize(deserializer)?.metadata;
        let owners = metadata.owner_references;
        Ok(Self {
            name: metadata.name,
            labels: metadata.labels,
            uid: metadata.uid,
            version: metadata.resource_version,
            is_terminating: metadata.deletion_timestamp.is_some(),
            controller: owners
                .iter()
                .find(|owner| owner.controller == Some(true))
                .map(|owner| owner.uid.clone()),
            owners: owners.into_iter().map(|owner| owner.uid).collect(),
            value: None,
        })
    }
}
