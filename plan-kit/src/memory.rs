//! Results of the last execution for an owner. Owned by the runtime; lost at a restart, and never needed for safety.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{Need, Target};

/// Results of the last execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Names that belong to objects of somebody else.
    pub taken_names: BTreeSet<String>,
    /// Objects that did not exist when the server was asked, although the request to create them may still arrive. A plan
    /// that creates objects of the resource uses these names first, so that none is created twice.
    pub late: BTreeSet<Target>,
    /// How often the server has refused writes of a pod, by its uid, since one of them succeeded. Where one of many is
    /// to be chosen, those that are refused come last.
    pub refused: BTreeMap<String, u32>,
    /// What has the name of an object that was to be created.
    pub holders: BTreeMap<String, Holder>,
    /// Names of pods that the server did not let come into being when last asked, themselves or what comes before them. Where
    /// names are given, and not made up, they come last: one of them keeps the others waiting.
    pub refused_names: BTreeSet<String>,
    /// First error among creations and deletions, if the last attempt had one.
    pub scale_error: Option<String>,
    /// First error among creations of pods and claims, if the last attempt had one.
    pub create_error: Option<String>,
    /// First error among updates, if the last attempt had one.
    pub update_error: Option<String>,
    /// What the plan before this one asked to read, a moment ago: the objects, and that there is none. Empty for the first
    /// plan of a reconcile.
    pub read: BTreeMap<Need, Option<Value>>,
}

/// An object that was in the way of a creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its uid.
    pub uid: String,
    /// Uids of all its owners.
    pub owners: Vec<String>,
}
