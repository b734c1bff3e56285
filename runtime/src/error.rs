//! Errors of requests to the API server, and the decisions that follow from them.

use std::time::Duration;

use kube_cache::Failure;
use serde::Deserialize;

/// The error response of the server: the fields of `meta/v1 Status` that decide about the next step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason such as `AlreadyExists`; empty if the response is from a proxy.
    pub reason: String,
    /// Message for users; events contain it.
    pub message: String,
    /// The `Retry-After` header.
    pub retry_after: Option<Duration>,
    /// What the response is about.
    pub details: Details,
}

/// The details of an error response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Name of the object; that of a new one may be generated.
    pub name: String,
    /// What is wrong with an object that is not valid.
    pub causes: Vec<Cause>,
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// The field, such as `spec.replicas`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The server refused the request.
    #[error("{}", .0.message)]
    Refused(Status),
    /// No complete response within the request timeout. A write may have taken effect: read before a retry.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The connection failed. A write may have taken effect: read before a retry.
    #[error("connection to the API server failed: {0}")]
    Transport(String),
    /// The response does not follow the API; the request itself succeeded.
    #[error("undecodable answer: {0}")]
    Malformed(String),
    /// The answer is larger than a reader takes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The request could not be built; a retry does not help.
    #[error("invalid request: {0}")]
    Invalid(String),
}

#[derive(Default, Deserialize)]
struct WireStatus {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Option<Details>,
}

impl ApiError {
    /// An error response from its code, body and `Retry-After`.
    pub fn refused(code: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let status: WireStatus = serde_json::from_slice(body).unwrap_or_default();
        let message = if status.message.is_empty() {
            let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
            format!("HTTP {code}: {}", text.trim())
        } else {
            status.message
        };
        Self::Refused(Status {
            code,
            reason: status.reason,
            message,
            retry_after,
            details: status.details.unwrap_or_default(),
        })
    }

    /// The server's error response, if there is one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused(status) => Some(status),
            Self::Timeout(_)
            | Self::Transport(_)
            | Self::Malformed(_)
            | Self::TooLarge(_)
            | Self::Invalid(_) => None,
        }
    }

    fn has_code(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }

    /// 404.
    pub fn is_not_found(&self) -> bool {
        self.has_code(404)
    }

    /// 404 because the server does not serve the path, not because no object has this name.
    pub fn is_unknown_path(&self, name: &str) -> bool {
        self.is_not_found() && self.status().is_some_and(|status| !status.message.contains(name))
    }

    /// 409 because an object of this name exists.
    pub fn is_already_exists(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// 409 because a precondition failed.
    pub fn is_conflict(&self) -> bool {
        self.has_code(409) && !self.is_already_exists()
    }

    /// 422: invalid content, or a precondition that is part of the content, such as a `test` operation or a uid.
    pub fn is_invalid(&self) -> bool {
        self.has_code(422)
    }

    /// 410, or an expired version.
    pub fn is_gone(&self) -> bool {
        self.has_code(410) || self.status().is_some_and(|status| status.reason == "Expired")
    }

    /// 429: the delay in `Retry-After`, otherwise one second.
    pub fn too_many_requests(&self) -> Option<Duration> {
        let status = self.status().filter(|status| status.code == 429)?;
        Some(status.retry_after.unwrap_or(Duration::from_secs(1)))
    }

    /// Whether a write that failed like this may have taken effect.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Refused(status) => status.code >= 500,
            Self::Timeout(_) | Self::Transport(_) | Self::Malformed(_) | Self::TooLarge(_) => true,
            Self::Invalid(_) => false,
        }
    }

    /// Whether a retry of the same read may succeed.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Refused(status) => status.code == 429 || status.code >= 500,
            Self::Timeout(_) | Self::Transport(_) => true,
            Self::Malformed(_) | Self::TooLarge(_) | Self::Invalid(_) => false,
        }
    }

    /// The failure as an input of a reflector.
    pub fn to_failure(&self) -> Failure {
        match self {
            Self::Refused(status) => Failure::from_status(status.code, &status.reason, status.retry_after),
            Self::Timeout(_) | Self::Transport(_) => Failure::Transport,
            Self::Malformed(_) | Self::TooLarge(_) | Self::Invalid(_) => Failure::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn already_exists_is_not_a_conflict_though_both_are_409() {
        let exists = ApiError::refused(
            409,
            br#"{"reason":"AlreadyExists","message":"pods \"a\" exists"}"#,
            None,
        );
        assert!(exists.is_already_exists() && !exists.is_conflict());
        let conflict = ApiError::refused(409, br#"{"reason":"Conflict","message":"changed"}"#, None);
        assert!(conflict.is_conflict() && !conflict.is_already_exists());
    }

    #[test]
    fn a_response_of_a_proxy_keeps_its_text() {
        let error = ApiError::refused(502, b"<html>bad gateway</html>", None);
        assert_eq!(error.to_string(), "HTTP 502: <html>bad gateway</html>");
        assert!(error.may_have_happened() && error.is_retriable());
    }

    #[test]
    fn what_is_wrong_with_an_object_is_read_from_the_details() {
        let body = br#"{"reason":"Invalid","message":"bad","details":{"name":"a-x","causes":[
            {"reason":"FieldValueInvalid","message":"Invalid value: 1","field":"spec.x"}]}}"#;
        let error = ApiError::refused(422, body, None);
        let details = &error.status().unwrap().details;
        assert_eq!((details.name.as_str(), details.causes.len()), ("a-x", 1));
        assert_eq!(details.causes[0].field, "spec.x");
        let bare = ApiError::refused(422, br#"{"details":null}"#, None);
        assert_eq!(bare.status().unwrap().details, Details::default());
    }

    #[test]
    fn a_refusal_below_500_proves_that_nothing_was_written() {
        for code in [400, 403, 404, 409, 422, 429] {
            assert!(
                !ApiError::refused(code, b"{}", None).may_have_happened(),
                "{code}"
            );
        }
        assert!(ApiError::Timeout(Duration::from_secs(1)).may_have_happened());
    }
}
