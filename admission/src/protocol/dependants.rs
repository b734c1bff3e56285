//! What is counted before an object may be deleted.

/// What an object has, and is to be counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependants {
    /// Pods of the namespace that have neither ended nor are being deleted.
    ActivePods {
        /// The namespace.
        namespace: String,
    },
    /// Claims of the namespace that are bound and not being deleted.
    BoundClaims {
        /// The namespace.
        namespace: String,
    },
    /// Objects of the resource in all namespaces that are not being deleted.
    Objects {
        /// Group of the resource.
        group: String,
        /// The version that is stored, or another one that is served.
        version: String,
        /// Plural name.
        plural: String,
        /// Kind.
        kind: String,
    },
}

/// How many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// So many.
    Number(u64),
    /// They could not be listed, for this reason.
    Failed(String),
    /// They have yet to be counted.
    Missing,
}
