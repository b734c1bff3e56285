//! Objects with a controller of ours.

use kube_cache::ObjectKey;

/// An object with a controller of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    /// Name of the controller.
    pub(super) controller: &'static str,
    /// The object.
    pub(super) key: ObjectKey,
}

/// An object, as it is printed.
pub(super) fn about(kind: &str, key: &ObjectKey) -> String {
    if kind.is_empty() {
        key.to_string()
    } else {
        format!("{kind} {key}")
    }
}
