//! A row of the registry.

use std::sync::Arc;

use kube_schema::table::TypeId;
use kube_schema::validate::FieldError;
use serde_json::Value;

use crate::crd::rules::Rule;
use crate::status::Subject;
use crate::store::ResourceId;
pub(crate) use crate::validation::MetadataRules;

/// A resource.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    pub(crate) kind: Arc<str>,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) scope: Scope,
    /// Served versions, the preferred one first.
    pub(crate) versions: Vec<Version>,
    /// The version objects are stored in.
    pub(crate) storage: String,
    pub(crate) conversion: Conversion,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) writes: Writes,
    pub(crate) traits: Traits,
}

/// How objects get from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook converts: `spec.conversion.webhook` of the definition.
    Webhook(Arc<Value>),
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// A served version.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    /// What must hold of a custom resource besides.
    pub(crate) rules: Arc<[Rule]>,
}

/// The shape of objects.
#[derive(Clone, Debug)]
pub(crate) enum Schema {
    /// A Go struct.
    Typed(TypeId),
    /// A custom resource.
    Structural(Arc<Value>),
}

/// A path below an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    Status,
    Scale,
    Eviction,
    Binding,
    Finalize,
    /// `log`: text.
    Log,
    /// `ephemeralcontainers`: part of the pod's spec.
    EphemeralContainers,
    /// `resize`: part of the pod's spec.
    Resize,
    /// `approval` and others that a server of this configuration has but that are not written yet.
    Absent(&'static str),
}

impl Subresource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Eviction => "eviction",
            Self::Binding => "binding",
            Self::Finalize => "finalize",
            Self::Log => "log",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
            Self::Absent(name) => name,
        }
    }
}

/// Which verbs the resource takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// All of them.
    All,
    /// All but deletecollection.
    NoDeleteCollection,
}

/// When `metadata.generation` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Never: the member is not kept.
    None,
    /// Starts at one and counts changes of the spec.
    Spec,
    /// As [`Generation::Content`], and changes of the labels too.
    ContentAndLabels,
    /// As [`Generation::Spec`], and changes of the annotations too.
    SpecAndAnnotations,
    /// Counts changes of anything but metadata and status.
    Content,
}

/// How deletion waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    /// It does not.
    None,
    /// For `spec.terminationGracePeriodSeconds`, once the pod has a node.
    Pod,
}

/// What a write of the status may change of the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// All that an update may.
    Open,
    /// All but the labels.
    NoLabels,
    /// All but owner references.
    NoOwners,
    /// Nothing: custom resources.
    Closed,
}

/// What becomes of dependents unless a deletion has its own policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    /// The kind has no dependents: propagation is not recorded.
    Unsupported,
}

/// A field of field selectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSelector {
    /// As selectors spell it.
    pub(crate) name: &'static str,
    /// Where it is.
    pub(crate) pointer: &'static str,
}

/// How a kind fills in defaults. Filling in again changes nothing, and what a member gets depends on no other that can
/// change without it.
#[derive(Clone, Copy)]
pub(crate) enum Defaults {
    /// It has none.
    None,
    /// In these members of the object.
    Within(&'static [&'static str], fn(&mut Value)),
    /// In any member.
    Anywhere(fn(&mut Value)),
}

/// How a kind differs from the generic path.
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    pub(crate) generation: Generation,
    pub(crate) grace: Grace,
    pub(crate) status_metadata: Metadata,
    pub(crate) metadata: MetadataRules,
    pub(crate) propagation: Propagation,
    /// Whether the name must be a DNS label instead of a subdomain.
    pub(crate) name: fn(&str) -> Option<String>,
    /// Whether PUT of an absent object creates it.
    pub(crate) create_on_update: bool,
    /// Whether PUT without a version overwrites.
    pub(crate) unconditional_update: bool,
    pub(crate) fields: &'static [FieldSelector],
    /// Fills in defaults; runs on every write and after reading from a client.
    pub(crate) default: Defaults,
    /// Turns an object of another version into one of this version, where more than `apiVersion` differs.
    pub(crate) convert: fn(&mut Value, &str),
    /// Resets what a creation may not set.
    pub(crate) prepare_create: fn(&mut Value),
    /// Resets what an update may not change: the new object and the old.
    pub(crate) prepare_update: fn(&mut Value, &Value),
    /// Completes a new status from the old.
    pub(crate) prepare_status: fn(&mut Value, &Value),
    /// The same for `resize`.
    pub(crate) prepare_resize: fn(&mut Value, &Value),
    /// What is wrong with a change through `resize`: the new object and the old.
    pub(crate) validate_resize: fn(&Value, &Value) -> Vec<FieldError>,
    /// The same for `ephemeralcontainers`.
    pub(crate) prepare_ephemeral: fn(&mut Value, &Value),
    /// What is wrong with a change through `ephemeralcontainers`: the new object and the old.
    pub(crate) validate_ephemeral: fn(&Value, &Value) -> Vec<FieldError>,
    /// What is wrong with a change of the status: the new object and the old.
    pub(crate) validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// What is wrong with an object.
    pub(crate) validate: fn(&Value) -> Vec<FieldError>,
    /// What is wrong with a change: the new object and the old.
    pub(crate) validate_update: fn(&Value, &Value) -> Vec<FieldError>,
    /// What of an object has no effect here, for warnings.
    pub(crate) without_effect: fn(&Value) -> Vec<String>,
}

impl std::fmt::Debug for Traits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traits")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl Traits {
    /// Kinds that check a changed object like a new one.
    pub(crate) const REPEATED: MetadataRules = MetadataRules {
        repeats_update: true,
        repeats_create: 1,
        standard_finalizers: true,
    };
    /// Kinds outside of the core that leave finalizers alone.
    pub(crate) const FOREIGN: MetadataRules = MetadataRules {
        repeats_update: true,
        repeats_create: 0,
        standard_finalizers: false,
    };
    /// Kinds that leave metadata to the generic rules.
    pub(crate) const GENERIC: MetadataRules = MetadataRules {
        repeats_update: false,
        repeats_create: 0,
        standard_finalizers: false,
    };
    /// A kind without particulars.
    pub(crate) const PLAIN: Self = Self {
        generation: Generation::None,
        grace: Grace::None,
        status_metadata: Metadata::Open,
        metadata: MetadataRules {
            repeats_update: true,
            repeats_create: 0,
            standard_finalizers: true,
        },
        propagation: Propagation::Background,
        name: crate::validation::subdomain,
        create_on_update: false,
        unconditional_update: true,
        fields: &[],
        default: Defaults::None,
        convert: |_, _| {},
        prepare_create: |_| {},
        prepare_update: |_, _| {},
        prepare_status: |_, _| {},
        prepare_resize: |_, _| {},
        validate_resize: |_, _| Vec::new(),
        prepare_ephemeral: |_, _| {},
        validate_ephemeral: |_, _| Vec::new(),
        validate_status: |_, _| Vec::new(),
        validate: |_| Vec::new(),
        validate_update: |_, _| Vec::new(),
        without_effect: |_| Vec::new(),
    };
}

impl Resource {
    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Whether all objects are stored in this version, also those written before the definition last changed.
    pub(crate) fn is_stored_as(&self, version: &str) -> bool {
        version == self.storage && (!self.is_custom() || self.versions.len() == 1)
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(
            self.versions.first().map(|version| &version.schema),
            Some(Schema::Structural(_))
        )
    }

    pub(crate) fn has(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }

    /// For errors about objects.
    pub(crate) fn subject(&self) -> Subject {
        Subject::new(&self.id.group, &self.id.plural)
    }

    /// For errors about content.
    pub(crate) fn kind_subject(&self) -> Subject {
        Subject::new(&self.id.group, &self.kind)
    }

    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.id.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.id.group)
        }
    }

    pub(crate) fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }
}
