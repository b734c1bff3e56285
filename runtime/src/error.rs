//! Why a request to the API server did not give what was asked for, and what to do about it.

use std::time::Duration;

use kube_cache::Failure;
use serde::Deserialize;

/// A refusal as the server words it: the fields of `meta/v1 Status` that decide what happens next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason such as `AlreadyExists`; empty when a proxy answered.
    pub reason: String,
    /// Sentence for people; users see it in events.
    pub message: String,
    /// The `Retry-After` header.
    pub retry_after: Option<Duration>,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The server answered and refused.
    #[error("{}", .0.message)]
    Refused(Status),
    /// No complete answer within the request timeout. A write may have happened: look before trying again.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The connection failed. A write may have happened: look before trying again.
    #[error("connection to the API server failed: {0}")]
    Transport(String),
    /// The answer is not what the API promises; the request itself succeeded.
    #[error("undecodable answer: {0}")]
    Malformed(String),
    /// The request could not be built from its parts; trying again does not help.
    #[error("invalid request: {0}")]
    Invalid(String),
}

#[derive(Default, Deserialize)]
struct WireStatus {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl ApiError {
    /// Reads a refusal from the answer's code, body and `Retry-After`.
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
        })
    }

    /// The server's refusal, if it answered.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused(status) => Some(status),
            Self::Timeout(_) | Self::Transport(_) | Self::Malformed(_) | Self::Invalid(_) => None,
        }
    }

    fn has_code(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }

    /// 404.
    pub fn is_not_found(&self) -> bool {
        self.has_code(404)
    }

    /// 404, and not because there is no object of this name: the server does not know the path.
    pub fn is_unknown_path(&self, name: &str) -> bool {
        self.is_not_found() && self.status().is_some_and(|status| !status.message.contains(name))
    }

    /// 409 because an object of this name exists.
    pub fn is_already_exists(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// 409 because a precondition did not hold.
    pub fn is_conflict(&self) -> bool {
        self.has_code(409) && !self.is_already_exists()
    }

    /// 410, or a version the server no longer keeps.
    pub fn is_gone(&self) -> bool {
        self.has_code(410) || self.status().is_some_and(|status| status.reason == "Expired")
    }

    /// 429: the wait the server asked for, one second if it named none.
    pub fn too_many_requests(&self) -> Option<Duration> {
        let status = self.status().filter(|status| status.code == 429)?;
        Some(status.retry_after.unwrap_or(Duration::from_secs(1)))
    }

    /// Whether a write that ended like this may have taken effect all the same.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Refused(status) => status.code >= 500,
            Self::Timeout(_) | Self::Transport(_) | Self::Malformed(_) => true,
            Self::Invalid(_) => false,
        }
    }

    /// Whether the same read may succeed later without anybody changing anything.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Refused(status) => status.code == 429 || status.code >= 500,
            Self::Timeout(_) | Self::Transport(_) => true,
            Self::Malformed(_) | Self::Invalid(_) => false,
        }
    }

    /// How a reflector sees this failure.
    pub fn to_failure(&self) -> Failure {
        match self {
            Self::Refused(status) => Failure::from_status(status.code, &status.reason, status.retry_after),
            Self::Timeout(_) | Self::Transport(_) => Failure::Transport,
            Self::Malformed(_) | Self::Invalid(_) => Failure::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn already_exists_is_no_conflict_though_both_are_409() {
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
    fn an_answer_of_a_proxy_keeps_its_text() {
        let error = ApiError::refused(502, b"<html>bad gateway</html>", None);
        assert_eq!(error.to_string(), "HTTP 502: <html>bad gateway</html>");
        assert!(error.may_have_happened() && error.is_retriable());
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
