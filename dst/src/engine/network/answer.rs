//! Answers as a client receives them.

use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kruise_sim::Response;
use serde_json::json;

/// Body of an answer.
pub type Answer = UnsyncBoxBody<Bytes, io::Error>;

/// The error of a connection that broke.
pub fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset")
}

/// The answer to a request that a fault refuses.
pub fn refusal(code: u16) -> Response {
    let reason = match code {
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        504 => "Timeout",
        _ => "ServiceUnavailable",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": "refused by the scenario",
    });
    Response::json(code, &body)
}

/// An answer in one piece.
pub fn whole(response: Response) -> http::Response<Answer> {
    let code = response.code;
    let body = Full::new(Bytes::from(response.body)).map_err(|never| match never {});
    let mut out = http::Response::new(body.boxed_unsync());
    *out.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    if code == 429 {
        out.headers_mut()
            .insert("retry-after", http::HeaderValue::from_static("1"));
    }
    out
}
