//! Failures as `metav1.Status`, with the words, codes and details of a real server.

use std::borrow::Cow;

use kube_schema::validate::{FieldError, Kind, aggregate};
use serde_json::{Map, Value, json};

use crate::wire::Response;

/// A failed request.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The HTTP status.
    pub code: u16,
    reason: Cow<'static, str>,
    message: String,
    details: Option<Value>,
}

/// A resource or kind, as errors name it: `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural, or the kind in errors about content.
    pub kind: String,
}

impl Subject {
    pub(crate) fn new(group: &str, kind: &str) -> Self {
        let (group, kind) = (group.to_owned(), kind.to_owned());
        Self { group, kind }
    }

    fn details(&self, name: &str) -> Map<String, Value> {
        let members = [("name", name), ("group", &self.group), ("kind", &self.kind)];
        let filled = members.into_iter().filter(|(_, value)| !value.is_empty());
        filled
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect()
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind)?;
        if self.group.is_empty() {
            return Ok(());
        }
        write!(f, ".{}", self.group)
    }
}

impl Failure {
    fn new(code: u16, reason: &'static str, message: String, details: Option<Map<String, Value>>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message,
            details: details.map(Value::Object),
        }
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if let Value::Object(members) = &mut status {
            if !self.reason.is_empty() {
                members.insert("reason".into(), self.reason.as_ref().into());
            }
            if let Some(details) = &self.details {
                members.insert("details".into(), details.clone());
            }
        }
        status
    }

    /// The text for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn response(&self) -> Response {
        Response::json(self.code, &self.status())
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), None)
    }

    pub(crate) fn not_found(subject: &Subject, name: &str) -> Self {
        let message = format!("{subject} {name:?} not found");
        Self::new(404, "NotFound", message, Some(subject.details(name)))
    }

    /// No such path or resource.
    pub(crate) fn no_resource() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::new(404, "NotFound", message, Some(Map::new()))
    }

    pub(crate) fn already_exists(subject: &Subject, name: &str, deleting: bool) -> Self {
        let prefix = if deleting { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{subject} {name:?} already exists");
        Self::new(409, "AlreadyExists", message, Some(subject.details(name)))
    }

    pub(crate) fn conflict(subject: &Subject, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {subject} {name:?}: {why}");
        Self::new(409, "Conflict", message, Some(subject.details(name)))
    }

    pub(crate) fn modified(subject: &Subject, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(subject, name, why)
    }

    pub(crate) fn forbidden(subject: &Subject, name: &str, why: &str) -> Self {
        let name_text = if name.is_empty() {
            String::new()
        } else {
            format!(" {name:?}")
        };
        let message = format!("{subject}{name_text} is forbidden: {why}");
        Self::new(403, "Forbidden", message, Some(subject.details(name)))
    }

    /// A namespace that is going away takes nothing new.
    pub(crate) fn terminating(subject: &Subject, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut failure = Self::forbidden(subject, name, &why);
        if let Some(Value::Object(details)) = &mut failure.details {
            let cause = json!({"reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"});
            details.insert("causes".into(), json!([cause]));
        }
        failure
    }

    /// `kind` is the kind, not the resource.
    pub(crate) fn invalid(kind: &Subject, name: &str, errors: &[FieldError]) -> Self {
        let message = format!("{kind} {name:?} is invalid: {}", aggregate(errors));
        let mut details = kind.details(name);
        let causes: Vec<Value> = errors.iter().map(cause).collect();
        details.insert("causes".into(), causes.into());
        Self::new(422, "Invalid", message, Some(details))
    }

    /// What is wrong with the parameters of a list or watch, if anything is.
    pub(crate) fn of_list_options(errors: &[FieldError]) -> Result<(), Self> {
        if errors.is_empty() {
            return Ok(());
        }
        let kind = Subject::new("meta.k8s.io", "ListOptions");
        Err(Self::invalid(&kind, "", errors))
    }

    /// A patch that does not fit: the server keeps the reason to itself.
    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request".to_owned();
        Self::new(422, "Invalid", message, Some(Map::new()))
    }

    /// The body has more bytes than this.
    #[cfg(feature = "http")]
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity is too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message, None)
    }

    /// The path takes other methods.
    pub(crate) fn method_unknown() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::new(405, "MethodNotAllowed", message, Some(Map::new()))
    }

    /// The subresource of a custom resource takes other methods.
    pub(crate) fn verb_unsupported(subject: &Subject, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{subject}\"");
        Self::new(405, "MethodNotAllowed", message, Some(subject.details("")))
    }

    pub(crate) fn unsupported_media_type(supported: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            supported.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message, None)
    }

    /// The route takes other types of body.
    pub(crate) fn media_type_unknown() -> Self {
        let message = "415: Unsupported Media Type".to_owned();
        Self::new(415, "UnsupportedMediaType", message, Some(Map::new()))
    }

    pub(crate) fn not_acceptable(supported: &[&str]) -> Self {
        let message = format!(
            "406: Not Acceptable\n\nAvailable representations: {}",
            supported.join(", ")
        );
        Self::new(406, "NotAcceptable", message, Some(Map::new()))
    }

    /// The answer does not have the requested form.
    pub(crate) fn unfit_form(why: String) -> Self {
        Self::new(406, "NotAcceptable", why, None)
    }

    /// As [`Self::not_acceptable`], of a custom resource.
    pub(crate) fn not_acceptable_custom() -> Self {
        let accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(406, "NotAcceptable", message, None)
    }

    /// A version that was compacted away.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into(), None)
    }

    pub(crate) fn version_too_large(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let details = json!({"causes": [cause], "retryAfterSeconds": 1});
        Self {
            code: 504,
            reason: "Timeout".into(),
            message,
            details: Some(details),
        }
    }

    /// A budget that allows no disruption now.
    pub(crate) fn too_many_requests(message: impl Into<String>, cause: &str) -> Self {
        let cause = json!({"reason": "DisruptionBudget", "message": cause});
        Self {
            code: 429,
            reason: "TooManyRequests".into(),
            message: message.into(),
            details: Some(json!({"causes": [cause]})),
        }
    }

    pub(crate) fn internal(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        let details = json!({"causes": [{"message": why}]});
        Self {
            code: 500,
            reason: "InternalError".into(),
            message,
            details: Some(details),
        }
    }

    /// What a webhook answered.
    pub(crate) fn denied(code: u16, reason: &str, message: String, details: Option<Value>) -> Self {
        Self {
            code,
            reason: reason.to_owned().into(),
            message,
            details,
        }
    }

    /// An error that the server has no reason for.
    pub(crate) fn unknown(why: &str) -> Self {
        Self::new(500, "", why.to_owned(), None)
    }
}

fn cause(error: &FieldError) -> Value {
    let reason = match &error.kind {
        Kind::Duplicate => "FieldValueDuplicate",
        Kind::Forbidden => "FieldValueForbidden",
        Kind::Invalid | Kind::Quoted => "FieldValueInvalid",
        Kind::NotFound => "FieldValueNotFound",
        Kind::NotSupported(_) => "FieldValueNotSupported",
        Kind::Required => "FieldValueRequired",
        Kind::TooLong(_) => "FieldValueTooLong",
        Kind::TooMany(_) => "FieldValueTooMany",
        Kind::TypeInvalid => "FieldValueTypeInvalid",
    };
    let text = error.to_string();
    let message = text.strip_prefix(&format!("{}: ", error.path)).unwrap_or(&text);
    json!({"reason": reason, "message": message, "field": error.path})
}
