//! What the API server asks, free of the envelope's version and encoding.

use jiff::Timestamp;
use serde_json::Value;

use crate::json::member;
use crate::{Error, Response};

/// What is being done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is new.
    Create,
    /// It replaces `old_object`.
    Update,
    /// `old_object` goes away.
    Delete,
    /// A stream to it is opened.
    Connect,
}

/// The `request` of an AdmissionReview.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Names the request; the same for every webhook it passes.
    pub uid: String,
    /// What is being done.
    pub operation: Operation,
    /// API group of the objects below; empty for the core group.
    pub group: String,
    /// Version the objects below are in.
    pub version: String,
    /// Kind of the objects below.
    pub kind: String,
    /// Such as `status`; empty for the object itself.
    pub sub_resource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty while a generated name is not yet known.
    pub name: String,
    /// Name of the user who makes the request.
    pub user: String,
    /// Nothing will be stored.
    pub dry_run: bool,
    /// The object to store; `null` for a deletion.
    pub object: Value,
    /// The stored object; `null` for a creation.
    pub old_object: Value,
    /// When it came in; the epoch unless the caller sets it.
    pub now: Timestamp,
}

impl Request {
    /// Reads the `request` of a review. Its objects are moved, not copied.
    pub fn from_review(mut request: Value) -> Result<Self, Error> {
        let mut part = |name: &str| request.get_mut(name).map(Value::take).unwrap_or_default();
        let (object, old_object) = (part("object"), part("oldObject"));
        let request = &request;
        let kind = request
            .get("kind")
            .filter(|kind| kind.is_object())
            .ok_or(Error::Request("kind"))?;
        let operation = match text(request, "operation").as_str() {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            "CONNECT" => Operation::Connect,
            _ => return Err(Error::Request("operation")),
        };
        Ok(Self {
            uid: text(request, "uid"),
            operation,
            group: text(kind, "group"),
            version: text(kind, "version"),
            kind: text(kind, "kind"),
            sub_resource: text(request, "subResource"),
            namespace: text(request, "namespace"),
            name: text(request, "name"),
            user: request
                .get("userInfo")
                .map(|user| text(user, "username"))
                .unwrap_or_default(),
            dry_run: request.get("dryRun").and_then(Value::as_bool).unwrap_or(false),
            object,
            old_object,
            now: Timestamp::UNIX_EPOCH,
        })
    }

    /// Has the object a specification? If not, the response: what is stored without one stays writable, and nothing
    /// else is taken without.
    pub(crate) fn specified(&self) -> Result<(), Response> {
        if member(&self.object, "spec").is_some() {
            return Ok(());
        }
        let is_stored = self.operation == Operation::Update && member(&self.old_object, "spec").is_none();
        Err(if is_stored {
            Response::ALLOW
        } else {
            Response::undecodable("spec must be an object")
        })
    }
}

fn text(object: &Value, name: &str) -> String {
    let text = object.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_read_from_its_review() {
        let request = Request::from_review(json!({
            "uid": "u",
            "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": "CloneSet"},
            "subResource": "scale",
            "name": "web",
            "namespace": "default",
            "operation": "UPDATE",
            "userInfo": {"username": "jane"},
            "dryRun": true,
            "object": {"a": 1},
            "oldObject": null,
        }));
        let request = request.unwrap();
        assert_eq!(request.operation, Operation::Update);
        assert_eq!(
            (
                request.group.as_str(),
                request.version.as_str(),
                request.kind.as_str()
            ),
            ("apps.kruise.io", "v1beta1", "CloneSet")
        );
        assert_eq!(
            (
                request.sub_resource.as_str(),
                request.name.as_str(),
                request.namespace.as_str()
            ),
            ("scale", "web", "default")
        );
        assert!(request.dry_run);
        assert_eq!(request.user, "jane");
        assert_eq!(
            (request.object, request.old_object),
            (json!({"a": 1}), Value::Null)
        );
    }

    #[test]
    fn a_request_without_kind_or_operation_is_an_error() {
        assert!(matches!(
            Request::from_review(json!({"operation": "CREATE"})),
            Err(Error::Request("kind"))
        ));
        for operation in [json!("PATCH"), json!(1), Value::Null] {
            let request = json!({"kind": {}, "operation": operation});
            assert!(matches!(
                Request::from_review(request),
                Err(Error::Request("operation"))
            ));
        }
    }
}
