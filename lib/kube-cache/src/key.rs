//! What a cache must know of an object, and the name it is stored under.

use std::fmt;

/// An object the cache can hold: usually a narrow view of what the server sent.
pub trait Cached {
    /// `metadata.namespace`; empty for cluster-scoped objects.
    fn namespace(&self) -> &str;
    /// `metadata.name`.
    fn name(&self) -> &str;
    /// `metadata.uid`: tells incarnations of one name apart.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion` as sent by the server.
    fn resource_version(&self) -> &str;
}

/// Namespace and name, ordered by namespace first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
}

impl ObjectKey {
    /// The key of `namespace/name`.
    pub fn new(namespace: impl Into<Box<str>>, name: impl Into<Box<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an object.
    pub fn of<T: Cached>(object: &T) -> Self {
        Self::new(object.namespace(), object.name())
    }
}

impl fmt::Display for ObjectKey {
    /// `namespace/name`, or `name` alone for cluster-scoped objects: the form client-go logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
