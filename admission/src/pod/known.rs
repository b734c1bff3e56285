//! What is known of the cluster besides the pod.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;
use kruise_api::meta::StringMap;
use serde_json::Value;

use super::sidecars::Sets;
use crate::look::{Look, Seen};

/// What the steps may know. Absent entries are unknown; an entry that is `None` is known not to exist.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The time.
    pub now: Timestamp,
    /// All SidecarSets.
    pub sets: Option<Arc<Sets>>,
    /// Labels of namespaces, by name.
    pub namespaces: BTreeMap<String, Option<StringMap>>,
    /// Revisions of SidecarSets, as stored.
    pub revisions: BTreeMap<Revision, Option<Value>>,
    /// SidecarSets asked for by name, where [`Self::sets`] does not have them: it may be a moment behind.
    pub by_name: BTreeMap<String, Option<Value>>,
    /// Which annotations SidecarSets may patch, as an administrator wrote it.
    pub whitelist: Option<Option<String>>,
    /// What looks at other objects showed.
    pub seen: BTreeMap<Look, Seen>,
}

/// Something to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// All SidecarSets.
    Sets,
    /// A SidecarSet that is not among them, by its name.
    Set(String),
    /// A namespace, by its name.
    Namespace(String),
    /// A revision of a SidecarSet, in the manager's namespace.
    Revision(Revision),
    /// Which annotations SidecarSets may patch, in the manager's namespace.
    Whitelist,
    /// Something that the rules of another kind depend on.
    Look(Look),
}

/// Which revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// The one of this name.
    Named(String),
    /// The newest with this custom version among those of a set.
    Versioned {
        /// Name of the set.
        set: String,
        /// The custom version.
        version: String,
    },
}

impl Known {
    /// Everything there is to know where there are no SidecarSets.
    pub fn without_sets() -> Self {
        Self {
            sets: Some(Arc::default()),
            ..Self::default()
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "the revision {name:?}"),
            Self::Versioned { version, .. } => write!(f, "the revision with custom version {version:?}"),
        }
    }
}
