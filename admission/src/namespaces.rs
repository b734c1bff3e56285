//! Tests of the namespace of a request, in CEL: for one namespace, or for one of several.
//!
//! Names are literals with their quotes, and need no escaping: the writer of a test checks that.

/// Precedes the name of a single namespace.
pub(crate) const IN_NAMESPACE: &str = "request.namespace == ";

/// Precedes a list of names.
const IN_NAMESPACES: &str = "request.namespace in [";

/// The test that holds in each of these namespaces; `None` without any.
pub(crate) fn test_of(names: &[&str]) -> Option<String> {
    match names {
        [] => None,
        [one] => Some(format!("{IN_NAMESPACE}{one}")),
        several => Some(format!("{IN_NAMESPACES}{}]", several.join(", "))),
    }
}

/// The names in a test that [`test_of`] wrote; `None` if it was written in another way.
pub(crate) fn names_in(test: &str) -> Option<Vec<&str>> {
    if let Some(name) = test.strip_prefix(IN_NAMESPACE) {
        return Some(vec![name]);
    }
    let list = test.strip_prefix(IN_NAMESPACES)?.strip_suffix(']')?;
    Some(list.split(", ").collect())
}
