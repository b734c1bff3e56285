//! Why a list or watch request failed, as far as the next step depends on it.

use std::time::Duration;

/// A failed list or watch, or an `ERROR` event inside a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// 410: the requested version or continue token is compacted away. The next request must be a new list.
    Gone,
    /// 401: the credentials are not accepted (any more).
    Unauthorized,
    /// 403: the role lacks `list` or `watch`.
    Forbidden,
    /// 404: the resource is not served, for example because its definition is not installed yet.
    NotFound,
    /// 429: the server is overloaded.
    TooManyRequests {
        /// The `Retry-After` header.
        retry_after: Option<Duration>,
    },
    /// 5xx.
    Server {
        /// The HTTP status code.
        code: u16,
        /// The `Retry-After` header.
        retry_after: Option<Duration>,
    },
    /// Any other status: the request is wrong, or the response is from a proxy.
    Status {
        /// The HTTP status code.
        code: u16,
    },
    /// The connection failed or was cut in the middle of a frame.
    Transport,
    /// The response could not be decoded.
    Malformed,
}

impl Failure {
    /// Classifies an HTTP code, or the code of a `Status` object, with its `reason`.
    pub fn from_status(code: u16, reason: &str, retry_after: Option<Duration>) -> Self {
        match (code, reason) {
            (410, _) | (_, "Expired" | "Gone") => Self::Gone,
            (401, _) => Self::Unauthorized,
            (403, _) => Self::Forbidden,
            (404, _) => Self::NotFound,
            (429, _) => Self::TooManyRequests { retry_after },
            (500..=599, _) => Self::Server { code, retry_after },
            _ => Self::Status { code },
        }
    }

    /// The least delay that the server requested.
    pub(crate) fn retry_after(self) -> Duration {
        match self {
            Self::TooManyRequests { retry_after } | Self::Server { retry_after, .. } => {
                retry_after.unwrap_or_default()
            }
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_version_is_gone_whatever_its_code() {
        assert_eq!(Failure::from_status(410, "", None), Failure::Gone);
        assert_eq!(Failure::from_status(500, "Expired", None), Failure::Gone);
        assert_eq!(
            Failure::from_status(504, "Timeout", None),
            Failure::Server {
                code: 504,
                retry_after: None
            }
        );
        assert_eq!(
            Failure::from_status(400, "BadRequest", None),
            Failure::Status { code: 400 }
        );
    }
}
