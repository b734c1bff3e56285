//! Unary gRPC calls over one connection to a unix socket.

mod connector;
mod frame;
mod sink;
mod status;
mod wire;

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use tokio::sync::watch;

use self::connector::UnixConnector;
use self::frame::{Frame, HEADER, Violation};
use self::sink::Undecodable;
pub(crate) use self::sink::{Beginnings, Each, Sink, Whole};
use crate::{Endpoint, Error};

/// What may be on its way to us before we take it, for a call and for all of them. Small: the peer is on this machine.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// The name that HTTP needs; the socket decides who answers.
const AUTHORITY: &str = "http://localhost";
/// Milliseconds of a time limit that fit into eight digits.
const MOST_MILLISECONDS: u128 = 99_999_999;

/// A connection that is made by the first call, and again by a call that finds it broken. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    http: legacy::Client<UnixConnector, Full<Bytes>>,
    ended: watch::Sender<u64>,
    endpoint: Endpoint,
    message_bytes: usize,
}

impl Channel {
    /// Must be called within a tokio runtime only from its first call on.
    pub(crate) fn new(endpoint: Endpoint, message_bytes: usize) -> Self {
        let connector = UnixConnector::new(endpoint.path());
        let ended = connector.ended();
        let http = legacy::Client::builder(TokioExecutor::new())
            .http2_only(true)
            // An open connection costs nothing, and its end says that the runtime has gone.
            .pool_idle_timeout(None)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build(connector);
        Self {
            http,
            ended,
            endpoint,
            message_bytes,
        }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Changes whenever a connection ends.
    pub(crate) fn ended(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Sends `request` to the method at `path` and reads the answer into `sink`.
    pub(crate) async fn call<S: Sink>(
        &self,
        path: &'static str,
        request: &impl Message,
        limit: Duration,
        sink: S,
    ) -> Result<S::Output, Error> {
        let call = self.exchange(path, request, limit, sink);
        tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
            let seconds = limit.as_secs_f32();
            Err(Error::TimedOut(format!(
                "no answer within {seconds} s from {}",
                self.endpoint
            )))
        })
    }

    async fn exchange<S: Sink>(
        &self,
        path: &'static str,
        request: &impl Message,
        limit: Duration,
        sink: S,
    ) -> Result<S::Output, Error> {
        let request = http::Request::post(format!("{AUTHORITY}{path}"))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .header("grpc-timeout", time_limit(limit))
            .body(Full::new(framed(request)))
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        let response = self.http.request(request).await;
        let (head, body) = response.map_err(|error| self.broken(&error))?.into_parts();
        let status = head.status;
        // An answer without a message has its status here.
        if let Some(code) = status::of(&head.headers) {
            code?;
            return Err(Violation::Empty.into());
        } else if status != http::StatusCode::OK || !is_grpc(&head.headers) {
            let kind = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
            let kind = String::from_utf8_lossy(kind.unwrap_or_default());
            return Err(Error::Malformed(format!(
                "HTTP {status} {kind} is no answer of gRPC"
            )));
        }
        self.receive(body, sink).await
    }

    async fn receive<S: Sink>(&self, mut body: Incoming, sink: S) -> Result<S::Output, Error> {
        let mut answer = Answer::new(self.message_bytes, sink);
        let mut ended = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken(&error))?;
            match frame.into_data() {
                Ok(data) => answer.take(data)?,
                Err(frame) => ended = frame.into_trailers().ok(),
            }
        }
        answer.end(ended.as_ref())
    }

    /// A failure of the connection, or of what came over it.
    fn broken(&self, error: &(dyn std::error::Error + 'static)) -> Error {
        let mut text = error.to_string();
        let mut is_protocol = false;
        let mut source = error.source();
        while let Some(error) = source {
            let more = error.to_string();
            if !text.ends_with(&more) {
                text = format!("{text}: {more}");
            }
            // Not the peer's word for it, but ours: it sent what HTTP/2 does not allow.
            is_protocol |= error
                .downcast_ref::<h2::Error>()
                .is_some_and(h2::Error::is_library);
            source = error.source();
        }
        if is_protocol {
            Error::Malformed(text)
        } else {
            Error::Unavailable(format!("{}: {text}", self.endpoint))
        }
    }
}

/// The body of an answer, as far as it has come.
pub(crate) struct Answer<S> {
    message: Frame,
    most: usize,
    sink: S,
}

impl<S: Sink> Answer<S> {
    /// Its message has at most `most` bytes.
    pub(crate) fn new(most: usize, sink: S) -> Self {
        let message = Frame::default();
        Self { message, most, sink }
    }

    /// Takes the next piece of the body.
    pub(crate) fn take(&mut self, piece: Bytes) -> Result<(), Error> {
        let piece = self.message.take(piece, self.most)?;
        self.sink.push(piece).map_err(malformed)
    }

    /// The body has ended, with these trailers.
    pub(crate) fn end(self, trailers: Option<&HeaderMap>) -> Result<S::Output, Error> {
        match trailers.and_then(status::of) {
            Some(code) => code?,
            None => return Err(Error::Malformed("there is no grpc-status".into())),
        }
        self.message.end()?;
        self.sink.finish().map_err(malformed)
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        match violation {
            Violation::TooLarge { .. } => Self::TooLarge(violation.to_string()),
            other => Self::Malformed(other.to_string()),
        }
    }
}

fn malformed(Undecodable(text): Undecodable) -> Error {
    Error::Malformed(text)
}

/// A message with the header of gRPC.
fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(HEADER + length);
    bytes.put_u8(0);
    bytes.put_u32(length as u32);
    bytes.put(message.encode_to_vec().as_slice());
    bytes.freeze()
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// At most eight digits and a unit.
fn time_limit(limit: Duration) -> String {
    match limit.as_millis() {
        milliseconds @ ..=MOST_MILLISECONDS => format!("{milliseconds}m"),
        _ => format!("{}S", limit.as_secs().min(MOST_MILLISECONDS as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_have_at_most_eight_digits() {
        assert_eq!(time_limit(Duration::from_millis(1500)), "1500m");
        assert_eq!(time_limit(Duration::from_millis(99_999_999)), "99999999m");
        assert_eq!(time_limit(Duration::from_secs(100_000)), "100000S");
        assert_eq!(time_limit(Duration::MAX), "99999999S");
    }
}
