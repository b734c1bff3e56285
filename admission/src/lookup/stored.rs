//! Kinds whose objects reviews look up.
//!
//! A kind says how its objects are read ([`Stored`]). Lookups and results carry it without its type, so that a
//! further kind changes nothing here and nothing where lookups are answered.

use std::{any::Any, cmp::Ordering, fmt, sync::Arc};

use kruise_api::definition::Kind;
use serde_json::Value;

use super::{Lookup, LookupResult, ObjectName};

/// A kind whose objects reviews look up: one by its name, or all of a namespace.
pub trait Stored: Sized + Send + Sync + 'static {
    /// The kind.
    const KIND: &'static Kind;

    /// What follows if all of a namespace cannot be listed, for the log; the review then goes on as if there were
    /// none. `None`: it fails.
    const OTHERWISE: Option<&'static str> = None;

    /// All objects of a namespace as reviews read them.
    type All: Send + Sync + 'static;

    /// An object as it is stored, with its `apiVersion`.
    ///
    /// # Errors
    /// Says why it cannot be read.
    fn read(object: Value) -> Result<Self, String>;

    /// Those of a list that can be read.
    fn collect(objects: Vec<Value>) -> Self::All;
}

/// Those of a list that can be read, in its order.
pub fn readable<T: Stored>(objects: Vec<Value>) -> Vec<Arc<T>> {
    let objects = objects.into_iter().map(T::read);
    objects.filter_map(Result::ok).map(Arc::new).collect()
}

/// A [`Stored`] kind without its type.
#[derive(Clone, Copy)]
pub struct StoredKind(&'static Functions);

struct Functions {
    kind: &'static Kind,
    otherwise: Option<&'static str>,
    one: fn(Value) -> LookupResult,
    all: fn(Vec<Value>) -> LookupResult,
}

impl StoredKind {
    /// The kind of a type.
    pub const fn of<T: Stored>() -> Self {
        Self(
            const {
                &Functions {
                    kind: T::KIND,
                    otherwise: T::OTHERWISE,
                    one: |object| LookupResult::one::<T>(T::read(object).map(Arc::new)),
                    all: |objects| LookupResult::all::<T>(T::collect(objects)),
                }
            },
        )
    }

    /// The kind.
    pub fn kind(self) -> &'static Kind {
        self.0.kind
    }

    /// See [`Stored::OTHERWISE`].
    pub fn otherwise(self) -> Option<&'static str> {
        self.0.otherwise
    }

    /// The result of [`Lookup::One`], from the object as it is stored.
    pub fn one(self, object: Value) -> LookupResult {
        (self.0.one)(object)
    }

    /// The result of [`Lookup::All`], from the objects as they are stored.
    pub fn all(self, objects: Vec<Value>) -> LookupResult {
        (self.0.all)(objects)
    }

    fn key(self) -> (&'static str, &'static str) {
        (self.0.kind.group, self.0.kind.kind)
    }
}

impl PartialEq for StoredKind {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for StoredKind {}

impl PartialOrd for StoredKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for StoredKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl fmt::Debug for StoredKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind.kind)
    }
}

impl Lookup {
    /// One object of a kind.
    pub fn one<T: Stored>(name: ObjectName) -> Self {
        Self::One(StoredKind::of::<T>(), name)
    }

    /// All objects of a kind in a namespace; of a kind without namespaces, `namespace` is empty.
    pub fn all<T: Stored>(namespace: impl Into<String>) -> Self {
        Self::All(StoredKind::of::<T>(), namespace.into())
    }
}

/// An object, or why it cannot be read.
pub type Decoded<T> = Result<Arc<T>, String>;

impl LookupResult {
    /// The result of [`Lookup::one`].
    pub fn one<T: Stored>(object: Decoded<T>) -> Self {
        Self::One(Arc::new(object))
    }

    /// The result of [`Lookup::all`].
    pub fn all<T: Stored>(all: T::All) -> Self {
        Self::All(Arc::new(all))
    }

    /// An object, or why it cannot be read; `None` if this is another result.
    pub fn as_one<T: Stored>(&self) -> Option<&Decoded<T>> {
        match self {
            Self::One(object) => object.downcast_ref(),
            _ => None,
        }
    }

    /// All objects of a namespace; `None` if this is another result.
    pub fn as_all<T: Stored>(&self) -> Option<&T::All> {
        match self {
            Self::All(all) => all.downcast_ref(),
            _ => None,
        }
    }
}

/// A value without its type.
pub(super) type Untyped = Arc<dyn Any + Send + Sync>;
