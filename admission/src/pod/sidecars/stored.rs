//! How SidecarSets and their revisions are looked up.

use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_plan_kit::sidecars::names::{CUSTOM_VERSION, SET_NAME};
use serde_json::Value;

use super::set::{Revision, Set, Sets};
use crate::lookup::{self, Lookup, Lookups, Reader, Stored};

impl Stored for Set {
    const KIND: &'static Kind = &kruise_api::sidecarset::KIND;

    type All = Arc<Sets>;

    fn read(object: Value) -> Result<Self, String> {
        Ok(Self::new(Arc::new(object)))
    }

    fn collect(objects: Vec<Value>) -> Self::All {
        Arc::new(Sets::of(objects))
    }
}

impl Revision {
    /// How it is looked up.
    pub(crate) fn lookup(&self) -> Lookup {
        Lookup::Revision(match self {
            Self::Named(name) => lookup::Revision::Named(name.clone()),
            Self::Versioned { set, version } => {
                lookup::Revision::Newest(vec![(SET_NAME, set.clone()), (CUSTOM_VERSION, version.clone())])
            }
        })
    }
}

/// All SidecarSets; none where the kind is not served.
pub(crate) fn sets(lookups: &Lookups) -> Result<&Arc<Sets>, Lookup> {
    let sets = lookups.all::<Set>("")?;
    sets.ok_or_else(|| Lookup::all::<Set>(""))
}

/// As [`sets`], for a rule that goes on without them; `None` while they are missing.
pub(crate) fn noted_sets<'a>(reader: &mut Reader<'a>) -> Option<&'a Arc<Sets>> {
    let sets = sets(reader.lookups);
    reader.noted(sets)
}
