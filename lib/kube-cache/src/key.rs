//! The metadata that a cache reads of an object, and the key it stores the object under.

use std::fmt;

/// An object the cache can hold: usually a narrow view of what the server sent.
pub trait Cached {
    /// `metadata.namespace`; empty for cluster-scoped objects.
    fn namespace(&self) -> &str;
    /// `metadata.name`.
    fn name(&self) -> &str;
    /// `metadata.uid`: differs between an object and its successor of the same name.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion` as sent by the server.
    fn resource_version(&self) -> &str;
    /// Whether `metadata.deletionTimestamp` is set. False for a type that does not keep it.
    fn is_terminating(&self) -> bool {
        false
    }
    /// `metadata.generation`, which counts the changes of the specification; `None` for a type that does not keep it.
    fn generation(&self) -> Option<i64> {
        None
    }
}

/// Implements [`Cached`] for a type whose identity is in fields of the same names, or in the fields of one of its
/// fields. The name after a semicolon is the field that is true while the object is being deleted.
///
/// ```
/// struct Meta { namespace: String, name: String, uid: String, resource_version: String }
/// struct Pod { metadata: Meta }
/// kube_cache::cached!(Pod, metadata);
/// ```
#[macro_export]
macro_rules! cached {
    ($object:ty $(, $part:ident)? $(; $terminating:ident)?) => {
        impl $crate::Cached for $object {
            fn namespace(&self) -> &str {
                &self$(.$part)?.namespace
            }

            fn name(&self) -> &str {
                &self$(.$part)?.name
            }

            fn uid(&self) -> &str {
                &self$(.$part)?.uid
            }

            fn resource_version(&self) -> &str {
                &self$(.$part)?.resource_version
            }
            $(
            fn is_terminating(&self) -> bool {
                self.$terminating
            }
            )?
        }
    };
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
