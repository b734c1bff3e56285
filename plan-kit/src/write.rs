//! Writes as data. The executor turns them into requests; tests, `--dry-run` and `kruise explain` print them.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

use crate::{Intent, ResourceId};

/// One write to the API.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// POST. AlreadyExists counts as done if the existing object is the one that was to be created.
    Create {
        /// What for.
        intent: Intent,
        /// Where; the name is known before the write.
        target: Target,
        /// The object.
        body: Body,
        /// UID of the controller that an already existing object must have to count as ours. `None`: it must have no
        /// controller.
        owner_uid: Option<String>,
    },
    /// PATCH.
    Patch {
        /// What for.
        intent: Intent,
        /// Which object.
        target: Target,
        /// Which part of it.
        part: Part,
        /// The change.
        patch: Patch,
        /// What must still hold for the write to be right.
        precondition: Precondition,
    },
    /// DELETE with the object's own grace period, background propagation.
    Delete {
        /// What for.
        intent: Intent,
        /// Which object.
        target: Target,
        /// What must still hold; at least its uid.
        precondition: Precondition,
    },
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Resource.
    pub resource: ResourceId,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.resource.plural, self.name)
    }
}

/// The endpoint of the object that a patch is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The object itself.
    Main,
    /// `/status`. The server also takes label and annotation changes here; where it refuses them, the executor sends
    /// the metadata as a patch of its own.
    Status,
    /// `/resize` of a pod: the resources of its containers, and nothing else.
    Resize,
    /// `/ephemeralcontainers` of a pod: further ephemeral containers, and nothing else.
    EphemeralContainers,
}

impl Part {
    /// What a patch of it does, in words.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Main => "change objects",
            Self::Status => "report a status",
            Self::Resize => "resize pods",
            Self::EphemeralContainers => "add ephemeral containers",
        }
    }
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes strategic merge; built-in kinds only.
    Strategic(Body),
    /// RFC 6902 operations.
    Json(Value),
}

/// What must still be true on the server. Version guards only where an unseen change would make the write wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Same object, whatever happened to it.
    Uid(String),
    /// Same object, untouched since.
    UidAndVersion(String, String),
    /// Same object, untouched since the previous step.
    VersionFromPreviousStep(String),
    /// The value at this JSON pointer (JSON patches only).
    Test(String, Value),
    /// Same object, and this other one, which would use it, does not exist: the server is asked first, and if it
    /// does the object is spared (deletions only).
    Unused(String, Target),
    /// Same object, untouched since, and its owner-to-be is still there: the server is asked first, and unless it
    /// has an owner of this uid that is not being deleted the write ends as a conflict (patches of [`Part::Main`]
    /// only).
    Owned {
        /// UID of the object.
        uid: String,
        /// Version of the object.
        version: String,
        /// The owner.
        owner: Target,
        /// UID of the owner.
        owner_uid: String,
    },
}

impl Precondition {
    /// The guarded uid, if any.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::Uid(uid)
            | Self::UidAndVersion(uid, _)
            | Self::VersionFromPreviousStep(uid)
            | Self::Unused(uid, _)
            | Self::Owned { uid, .. } => Some(uid),
            Self::Test(..) => None,
        }
    }

    /// Another object that decides about the write, and is read before it.
    pub fn related(&self) -> Option<&Target> {
        match self {
            Self::Unused(_, user) => Some(user),
            Self::Owned { owner, .. } => Some(owner),
            Self::Uid(_) | Self::UidAndVersion(..) | Self::VersionFromPreviousStep(_) | Self::Test(..) => {
                None
            }
        }
    }
}

/// An object to create or a patch to send: a shared base and the few members that differ, so that a thousand pods
/// of one plan cost one template.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// What all have in common.
    pub base: Arc<Value>,
    /// JSON pointer and value, applied in order; the parent of each pointer exists in `base`.
    pub set: Vec<(&'static str, Value)>,
}

impl From<Value> for Body {
    fn from(whole: Value) -> Self {
        Self {
            base: Arc::new(whole),
            set: Vec::new(),
        }
    }
}

impl Body {
    /// The whole object.
    pub fn render(&self) -> Value {
        let mut object = (*self.base).clone();
        for (pointer, value) in &self.set {
            let Some((parent, key)) = pointer.rsplit_once('/') else {
                continue;
            };
            let key = key.replace("~1", "/").replace("~0", "~");
            if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
                parent.insert(key, value.clone());
            }
        }
        object
    }
}

impl Write {
    /// Which object.
    pub fn target(&self) -> &Target {
        match self {
            Self::Create { target, .. } | Self::Patch { target, .. } | Self::Delete { target, .. } => target,
        }
    }

    /// What must still hold, if the write is for an object that exists.
    pub fn precondition(&self) -> Option<&Precondition> {
        match self {
            Self::Create { .. } => None,
            Self::Patch { precondition, .. } | Self::Delete { precondition, .. } => Some(precondition),
        }
    }

    /// The uid of the object, if the write is for one that exists and names its uid.
    pub fn uid(&self) -> Option<&str> {
        self.precondition()?.uid()
    }

    /// What for.
    pub fn intent(&self) -> Intent {
        match self {
            Self::Create { intent, .. } | Self::Patch { intent, .. } | Self::Delete { intent, .. } => *intent,
        }
    }
}

impl fmt::Display for Write {
    /// `verb resource/name`: stable, used by tests, dry runs and explanations.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.intent().as_str(), self.target())
    }
}

impl Patch {
    /// `Content-Type` of merge patches.
    pub const MERGE: &'static str = "application/merge-patch+json";

    /// `Content-Type` of the request.
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::Merge(_) => Self::MERGE,
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            Self::Json(_) => "application/json-patch+json",
        }
    }

    /// The change itself, without a precondition.
    pub fn body(&self) -> Value {
        match self {
            Self::Merge(patch) | Self::Json(patch) => patch.clone(),
            Self::Strategic(body) => body.render(),
        }
    }

    /// The request body with the precondition written into it: as `metadata.uid` and `metadata.resourceVersion`, which
    /// the server compares and answers 409, or as a `test` operation. `previous_version` is the version the previous
    /// step of the object returned.
    pub fn guarded(&self, precondition: &Precondition, previous_version: Option<&str>) -> Value {
        let (uid, version) = match precondition {
            Precondition::Uid(uid) | Precondition::Unused(uid, _) => (Some(uid.as_str()), None),
            Precondition::UidAndVersion(uid, version) | Precondition::Owned { uid, version, .. } => {
                (Some(uid.as_str()), Some(version.as_str()))
            }
            Precondition::VersionFromPreviousStep(uid) => (Some(uid.as_str()), previous_version),
            Precondition::Test(..) => (None, None),
        };
        match self {
            Self::Merge(_) | Self::Strategic(_) => {
                let mut patch = self.body();
                if let Some(object) = patch.as_object_mut() {
                    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
                    if let Some(metadata) = metadata.as_object_mut() {
                        if let Some(uid) = uid {
                            metadata.insert("uid".into(), uid.into());
                        }
                        if let Some(version) = version {
                            metadata.insert("resourceVersion".into(), version.into());
                        }
                    }
                }
                patch
            }
            Self::Json(operations) => {
                let mut guards = Vec::new();
                if let Some(uid) = uid {
                    guards.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
                }
                if let Some(version) = version {
                    guards.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
                }
                if let Precondition::Test(path, value) = precondition {
                    guards.push(json!({"op": "test", "path": path, "value": value}));
                }
                guards.extend(operations.as_array().cloned().unwrap_or_default());
                Value::Array(guards)
            }
        }
    }
}
