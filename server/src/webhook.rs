//! The TLS server that the API server calls.
//!
//! Whatever arrives, the caller gets an HTTP answer or a closed connection: a body that is no review is 400, a good
//! review is always answered as a review, and a handler that panics denies its one request. What would take more memory
//! than there is for requests is refused before it is read: its body, or the tree of what the body says.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode,
    header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use kube_schema::weight;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle, time::timeout};

use crate::{
    bodies::{Bodies, Room},
    listen::{self, Answer, Caller, Limits, Respond, answer, text},
    metrics::Metrics,
    pieces::Pieces,
    review::{Response, Review},
    tls::Tls,
};

const MEBIBYTE: usize = 1 << 20;
const REVIEW_LIMIT: usize = 8 * MEBIBYTE;
const CONVERSION_LIMIT: usize = 256 * MEBIBYTE;
/// What an object of a ConversionReview is nested in: the list, the request and the review.
const OBJECT_DEPTH: usize = 3;
/// Memory of a request and its connection's part of it, beside body and answer.
const OVERHEAD: usize = 4 << 10;
const JSON: &str = "application/json";

/// Decides a review. It only computes, because it runs on the thread that serves the connection. A review that has to
/// wait for a lookup is decided [later](Decision::Later).
pub type Reviewer = dyn Fn(Review) -> Decision + Send + Sync;

/// Result of a reviewer.
pub enum Decision {
    /// Decided at once.
    Now(Response),
    /// Decided by this future. The future has to end in time by itself.
    Later(Pin<Box<dyn Future<Output = Response> + Send>>),
}

impl From<Response> for Decision {
    fn from(response: Response) -> Self {
        Self::Now(response)
    }
}

/// Converts the body of a ConversionReview to the body of its answer, in pieces; an error is the text of an HTTP 400.
/// The converter owns the body, so that it can free the parts it has read; it reads one object at a time.
pub type Converter = dyn Fn(Vec<u8>) -> Result<Vec<Vec<u8>>, String> + Send + Sync;

/// Handler of a route.
#[derive(Clone)]
pub enum Handler {
    /// Admission; bodies up to 8 MiB.
    Review(Arc<Reviewer>),
    /// Conversion, on a thread of its own because lists are large; bodies up to 256 MiB, or four fifths of
    /// [`Limits::conversions`].
    Convert(Arc<Converter>),
}

/// The routes and their limits. `/healthz` is answered without a route.
#[derive(Default)]
pub struct WebhookServer {
    /// Handlers by path.
    pub routes: BTreeMap<String, Handler>,
    /// Limits of the listener.
    pub limits: Limits,
    /// Counters, shared with a registry.
    pub metrics: Metrics,
    /// Bodies and answers of reviews in flight.
    pub reviews: Bodies,
    /// Bodies and answers of conversions in flight: apart, so that large lists do not keep admission waiting.
    pub conversions: Bodies,
    /// What is read of bodies.
    pub trees: Bodies,
}

/// Serves until `stop` becomes true or its sender is dropped, then lets requests in flight finish.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<Tls>,
    server: Arc<WebhookServer>,
    stop: watch::Receiver<bool>,
) {
    let limits = server.limits.clone();
    listen::run(listener, Some(tls), server, limits, stop).await;
}

impl Respond for WebhookServer {
    async fn respond(&self, caller: &Caller, request: Request<Incoming>) -> Answer {
        let path = request.uri().path();
        if path == "/healthz" {
            return match *request.method() {
                Method::GET | Method::HEAD => text(StatusCode::OK, "ok"),
                _ => wrong_method("GET, HEAD"),
            };
        }
        let Some((path, handler)) = self.routes.get_key_value(path) else {
            return text(StatusCode::NOT_FOUND, "no such webhook");
        };
        if !caller.is_known {
            return text(StatusCode::UNAUTHORIZED, "a client certificate is needed");
        }
        let timer = self.metrics.begin(path);
        let answer = self
            .handle(handler, caller, request)
            .await
            .unwrap_or_else(|refusal| refusal);
        timer.answered(answer.status());
        answer
    }
}

impl WebhookServer {
    /// Answers a request to a known path; both results are answers.
    async fn handle(
        &self,
        handler: &Handler,
        caller: &Caller,
        request: Request<Incoming>,
    ) -> Result<Answer, Answer> {
        if request.method() != Method::POST {
            return Err(wrong_method("POST"));
        }
        if !is_json(request.headers()) {
            let message = "expected content type application/json";
            return Err(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let (limit, bodies, together) = match handler {
            Handler::Review(_) => (REVIEW_LIMIT, &self.reviews, self.limits.reviews),
            Handler::Convert(_) => (CONVERSION_LIMIT, &self.conversions, self.limits.conversions),
        };
        let (patience, peer) = (self.limits.room, caller.peer);
        let limit = match handler {
            Handler::Review(_) => limit.min(together),
            Handler::Convert(_) => limit.min(together / 5 * 4),
        };
        let length = length(request.headers()).unwrap_or(limit);
        if length > limit {
            return Err(too_large(limit));
        }
        let busy = || {
            text(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many requests are being read",
            )
        };
        // Headers, which may be large, are not kept.
        let body = request.into_body();
        let held = match handler {
            Handler::Review(_) => length,
            // The answer grows while the body is freed, and may be larger.
            Handler::Convert(_) => length + length / 4,
        };
        let amount = together.min(held + OVERHEAD);
        let room = bodies.room(together, peer, amount, patience).await;
        let room = room.ok_or_else(busy)?;
        let body = tokio::select! {
            body = self.read(body, length, limit) => body?,
            () = room.gone() => return Err(busy()),
        };
        let room = room.complete().ok_or_else(busy)?;
        let heavy = match handler {
            Handler::Review(_) => weight::of(&body),
            Handler::Convert(_) => weight::heaviest(&body, OBJECT_DEPTH),
        };
        if heavy > self.limits.trees {
            return Err(too_heavy(self.limits.trees));
        }
        let tree = self.trees.room(self.limits.trees, peer, heavy, patience).await;
        let tree = tree.and_then(Room::complete).ok_or_else(busy)?;
        let (mut answer, (room, tree)) = match handler {
            Handler::Review(decide) => (self.review(decide.as_ref(), body, peer).await, (room, tree)),
            Handler::Convert(convert) => self.convert(convert.clone(), body, (room, tree)).await?,
        };
        drop(tree);
        let size = answer.body().size() + OVERHEAD;
        let room = room.answered(together, caller, size);
        answer.body_mut().keep(room.ok_or_else(busy)?);
        Ok(answer)
    }

    async fn read(&self, body: Incoming, length: usize, limit: usize) -> Result<Vec<u8>, Answer> {
        let collect = async {
            let mut body = Limited::new(body, limit);
            // One piece from the start, as pieces would have to be copied together; what is not written to costs
            // no memory.
            let mut read = Vec::with_capacity(length);
            while let Some(frame) = body.frame().await {
                if let Ok(data) = frame?.into_data() {
                    read.extend_from_slice(&data);
                }
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(read)
        };
        match timeout(self.limits.body, collect).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limit)),
            Ok(Err(error)) => {
                let message = format!("cannot read the body: {error}");
                Err(text(StatusCode::BAD_REQUEST, message))
            }
            Err(_) => Err(text(StatusCode::REQUEST_TIMEOUT, "body did not arrive in time")),
        }
    }

    async fn review(&self, decide: &Reviewer, body: Vec<u8>, peer: IpAddr) -> Answer {
        let review = match Review::decode(&body) {
            Ok(review) => Review {
                peer: Some(peer),
                ..review
            },
            Err(error) => return text(StatusCode::BAD_REQUEST, error.to_string()),
        };
        drop(body);
        let reply = review.reply.clone();
        let decided = match catch_unwind(AssertUnwindSafe(|| decide(review))) {
            Ok(Decision::Now(response)) => Some(response),
            // A task of its own: if it panics, only this request fails. It ends with the request, whose client may
            // leave.
            Ok(Decision::Later(response)) => Task(tokio::spawn(response)).await,
            Err(_) => None,
        };
        let response = decided.unwrap_or_else(|| {
            self.metrics.panicked();
            tracing::error!("a webhook handler panicked");
            Response::Deny {
                code: 500,
                reason: None,
                message: "the webhook handler panicked".into(),
            }
        });
        answer(
            StatusCode::OK,
            JSON,
            Pieces::one(reply.answer(&response).to_string()),
        )
    }

    async fn convert(
        &self,
        convert: Arc<Converter>,
        body: Vec<u8>,
        rooms: (Room, Room),
    ) -> Result<(Answer, (Room, Room)), Answer> {
        // The thread continues when the client disconnects, so the memory counts until it ends. It does not begin then.
        let work = move || (convert(body), rooms);
        match Task(tokio::task::spawn_blocking(work)).await {
            Some((Ok(pieces), rooms)) => Ok((answer(StatusCode::OK, JSON, Pieces::of(pieces)), rooms)),
            Some((Err(message), _)) => Err(text(StatusCode::BAD_REQUEST, message)),
            None => {
                self.metrics.panicked();
                tracing::error!("the conversion handler panicked");
                let message = "the conversion handler panicked";
                Err(text(StatusCode::INTERNAL_SERVER_ERROR, message))
            }
        }
    }
}

/// A task that is cancelled when this is dropped. `None`: it panicked.
struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(context).map(Result::ok)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The announced length of a body.
fn length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(limit: usize) -> Answer {
    text(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("body exceeds {limit} bytes"),
    )
}

fn too_heavy(limit: usize) -> Answer {
    text(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("what the body holds would take more than {limit} bytes of memory"),
    )
}

fn wrong_method(allowed: &'static str) -> Answer {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    let allowed = HeaderValue::from_static(allowed);
    answer.headers_mut().insert(ALLOW, allowed);
    answer
}

/// Parameters such as a character set do not matter: JSON is UTF-8.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(JSON))
}
