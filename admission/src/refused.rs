//! Refusals that are counted and logged, beside the response to the client.

use serde_json::Value;

use crate::Request;
use crate::json::text;

/// A guard refused a request: this object stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The guard, as the protection log names it.
    pub event: &'static str,
    /// Kind of the object.
    pub kind: String,
    /// Empty if the object has no namespace.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Name of the user who made the request.
    pub user: String,
}

impl Refused {
    /// By a protection label. The stored object tells its name, which a request to delete a collection does not.
    pub(crate) fn deletion(kind: &str, request: &Request) -> Self {
        let metadata = request.old_object.get("metadata").unwrap_or(&Value::Null);
        let name = Some(text(metadata, "name")).filter(|name| !name.is_empty());
        Self {
            event: "DeletionProtection",
            kind: kind.to_owned(),
            namespace: text(metadata, "namespace").to_owned(),
            name: name.unwrap_or(&request.name).to_owned(),
            user: request.user.clone(),
        }
    }
}
