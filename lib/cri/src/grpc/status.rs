//! The status of a call, as gRPC writes it into headers or trailers.

use http::header::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode;

use crate::Error;

const OK: u32 = 0;
const DEADLINE_EXCEEDED: u32 = 4;
const NOT_FOUND: u32 = 5;
const PERMISSION_DENIED: u32 = 7;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;
const UNAVAILABLE: u32 = 14;
const UNAUTHENTICATED: u32 = 16;

/// What the runtime's gRPC library says of an answer that it does not send.
const TOO_LARGE: &str = "larger than max";

/// The status in these headers; nothing if there is none.
pub(super) fn of(headers: &HeaderMap) -> Option<Result<(), Error>> {
    let code = headers.get("grpc-status")?;
    let message = headers.get("grpc-message").map(HeaderValue::as_bytes);
    let message = percent_decode(message.unwrap_or_default())
        .decode_utf8_lossy()
        .into_owned();
    let code = code.to_str().ok().and_then(|code| code.parse().ok());
    Some(match code {
        None => Err(Error::Malformed("grpc-status is no number".into())),
        Some(OK) => Ok(()),
        Some(code) => Err(error(code, message)),
    })
}

fn error(code: u32, message: String) -> Error {
    match code {
        DEADLINE_EXCEEDED => Error::TimedOut(message),
        NOT_FOUND => Error::NotFound(message),
        PERMISSION_DENIED | UNAUTHENTICATED => Error::CredentialsRefused(message),
        RESOURCE_EXHAUSTED if message.contains(TOO_LARGE) => Error::TooLarge(message),
        UNIMPLEMENTED => Error::Unimplemented(message),
        UNAVAILABLE => Error::Unavailable(message),
        code => Error::Other { code, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: &str, message: &str) -> Option<Result<(), Error>> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", HeaderValue::from_str(code).unwrap());
        headers.insert(
            "grpc-message",
            HeaderValue::from_bytes(message.as_bytes()).unwrap(),
        );
        of(&headers)
    }

    #[test]
    fn codes_become_kinds_of_errors() {
        let text = || "a".to_owned();
        for (code, error) in [
            ("4", Error::TimedOut(text())),
            ("5", Error::NotFound(text())),
            ("7", Error::CredentialsRefused(text())),
            ("12", Error::Unimplemented(text())),
            ("14", Error::Unavailable(text())),
            ("16", Error::CredentialsRefused(text())),
            (
                "8",
                Error::Other {
                    code: 8,
                    message: text(),
                },
            ),
            (
                "4000",
                Error::Other {
                    code: 4000,
                    message: text(),
                },
            ),
        ] {
            assert_eq!(read(code, "a"), Some(Err(error)), "{code}");
        }
        let large = "grpc: trying to send message larger than max (20 vs. 10)";
        assert_eq!(read("8", large), Some(Err(Error::TooLarge(large.into()))));
        assert_eq!(read("0", "ignored"), Some(Ok(())));
        assert_eq!(of(&HeaderMap::new()), None);
    }

    #[test]
    fn texts_are_decoded_and_malformed_ones_are_kept() {
        assert_eq!(
            read("5", "no%20image%20%C3%A4"),
            Some(Err(Error::NotFound("no image ä".into())))
        );
        assert_eq!(
            read("5", "%FF%zz%"),
            Some(Err(Error::NotFound("\u{fffd}%zz%".into())))
        );
        assert!(matches!(read("x", ""), Some(Err(Error::Malformed(_)))));
        assert!(matches!(read("-1", ""), Some(Err(Error::Malformed(_)))));
    }
}
