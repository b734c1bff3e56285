//! Which resources there are. One row per resource; handlers are generic and read the row.
//!
//! Built-in rows come from [`builtin`]; custom resource definitions add theirs while the server runs.

mod builtin;
mod resource;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::resource::{
    Conversion, Defaults, FieldSelector, Generation, Grace, Metadata, MetadataRules, Propagation, Resource,
    Schema, Scope, Subresource, Traits, Version, Writes,
};
use crate::store::ResourceId;

/// All resources, by group and plural.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    resources: BTreeMap<ResourceId, Arc<Resource>>,
}

impl Registry {
    /// The built-in resources.
    pub(crate) fn builtin() -> Self {
        let rows = builtin::resources().into_iter();
        Self {
            resources: rows.map(|row| (row.id.clone(), Arc::new(row))).collect(),
        }
    }

    pub(crate) fn get(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        let id = ResourceId {
            group: group.into(),
            plural: plural.into(),
        };
        self.resources.get(&id)
    }

    pub(crate) fn by_id(&self, id: &ResourceId) -> Option<&Arc<Resource>> {
        self.resources.get(id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    pub(crate) fn insert(&mut self, resource: Resource) {
        self.resources.insert(resource.id.clone(), Arc::new(resource));
    }

    pub(crate) fn remove(&mut self, id: &ResourceId) {
        self.resources.remove(id);
    }

    /// Whether any resource of the group is served in this version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.all()
            .any(|one| one.id.group.as_ref() == group && one.version(version).is_some())
    }
}
