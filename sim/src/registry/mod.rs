//! Which resources there are. One row per resource; handlers are generic and read the row.
//!
//! Built-in rows come from [`builtin`]; custom resource definitions add theirs while the server runs.

mod builtin;
mod resource;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use self::resource::{
    Conversion, Defaults, FieldSelector, Generation, Grace, Metadata, MetadataRules, Propagation, Resource,
    Schema, Scope, Subresource, Traits, Version, Writes,
};
use crate::store::ResourceId;

/// All resources, by group and plural. Each request is for one, by names that are not its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    groups: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<Resource>>>,
    /// Groups and kinds that are served, or were.
    kinds: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl Registry {
    /// The built-in resources.
    pub(crate) fn builtin() -> Self {
        let mut registry = Self::default();
        for row in builtin::resources() {
            registry.insert(row);
        }
        registry
    }

    pub(crate) fn get(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.groups.get(group)?.get(plural)
    }

    pub(crate) fn by_id(&self, id: &ResourceId) -> Option<&Arc<Resource>> {
        self.get(&id.group, &id.plural)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.values().flat_map(BTreeMap::values)
    }

    pub(crate) fn insert(&mut self, resource: Resource) {
        self.kinds
            .insert((resource.id.group.clone(), resource.kind.clone()));
        let group = self.groups.entry(resource.id.group.clone()).or_default();
        group.insert(resource.id.plural.clone(), Arc::new(resource));
    }

    pub(crate) fn remove(&mut self, id: &ResourceId) {
        if let Some(group) = self.groups.get_mut(&id.group) {
            group.remove(&id.plural);
        }
    }

    /// Whether a kind, named as owner references do, is served or ever was.
    pub(crate) fn knows(&self, api_version: &str, kind: &str) -> bool {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.kinds.contains(&(group.into(), kind.into()))
    }

    /// Whether any resource of the group is served in this version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.all()
            .any(|one| one.id.group.as_ref() == group && one.version(version).is_some())
    }
}
