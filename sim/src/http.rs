//! The API on a socket.
//!
//! The one part of this crate that does I/O: it reads the clock, answers requests one at a time from the shared
//! [`Api`], and streams watches. Whatever a controller manager would do in the background is done right after each
//! write.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WARNING};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::{Api, CallId, Method, Outcome, Request, Response, WatchEvent, WatchId, WebhookReply};

/// Largest body that is read, in bytes.
const BODY: usize = 3 << 20;
/// How often an idle watch looks at the clock.
const IDLE: Duration = Duration::from_secs(1);

type Body = BoxBody<Bytes, Infallible>;

/// An API that many connections share.
#[derive(Debug)]
pub struct Shared {
    api: Mutex<Api>,
    /// The newest revision: watches wait for it to move.
    revision: watch::Sender<u64>,
}

impl Shared {
    /// Shares an API.
    pub fn new(api: Api) -> Arc<Self> {
        let (revision, _) = watch::channel(api.revision());
        Arc::new(Self {
            api: Mutex::new(api),
            revision,
        })
    }

    /// A panic while the API was locked leaves it as consistent as the last finished write.
    fn lock(&self) -> MutexGuard<'_, Api> {
        self.api.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request.
    pub fn handle(&self, request: &Request, now: Timestamp) -> Outcome {
        let mut api = self.lock();
        let outcome = api.handle(request, now);
        self.after(api, now, request.method != Method::Get);
        outcome
    }

    /// Goes on with a request that waited for a webhook.
    pub fn resume(&self, id: CallId, reply: WebhookReply, now: Timestamp) -> Outcome {
        let mut api = self.lock();
        let outcome = api.resume(id, reply);
        self.after(api, now, true);
        outcome
    }

    /// What follows a request: background work, and news for the watches.
    fn after(&self, mut api: MutexGuard<'_, Api>, now: Timestamp, wrote: bool) {
        if wrote {
            api.tick(now);
        }
        let newest = api.revision();
        drop(api);
        self.revision
            .send_if_modified(|known| std::mem::replace(known, newest) != newest);
    }
}

/// A watch that is closed when its client leaves.
struct OpenWatch {
    shared: Arc<Shared>,
    id: WatchId,
    changed: watch::Receiver<u64>,
    ended: bool,
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.shared.lock().close_watch(self.id);
    }
}

impl OpenWatch {
    /// The next lines; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.ended {
                return None;
            }
            self.changed.mark_unchanged();
            let events = self.shared.lock().watch_events(self.id, Timestamp::now());
            let mut lines = String::new();
            for line in events.iter().filter_map(WatchEvent::text) {
                lines.push_str(&line);
                lines.push('\n');
            }
            self.ended = events.contains(&WatchEvent::End);
            if !lines.is_empty() {
                return Some(lines.into());
            }
            if !self.ended {
                // either way there may be something to show: an event, or a bookmark
                let _elapsed = tokio::time::timeout(IDLE, self.changed.changed()).await;
            }
        }
    }
}

/// Serves connections until the task is dropped.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) -> std::io::Result<Infallible> {
    loop {
        let (stream, _) = listener.accept().await?;
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| respond(shared.clone(), request));
            let builder = Builder::new(TokioExecutor::new());
            // a client that breaks off has nobody to tell
            let _closed = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Body>, Infallible> {
    let Some(request) = read(request).await else {
        return Ok(whole(Response::text(400, "bad request\n")));
    };
    let mut outcome = shared.handle(&request, Timestamp::now());
    loop {
        match outcome {
            Outcome::Respond(response) => return Ok(whole(response)),
            Outcome::Watch(id) => return Ok(streamed(shared, id)),
            // nobody calls webhooks from here yet: they count as unreachable
            Outcome::Call(call) => {
                let reply = WebhookReply::Failed("no endpoints available".to_owned());
                outcome = shared.resume(call.id, reply, Timestamp::now());
            }
        }
    }
}

async fn read(request: hyper::Request<Incoming>) -> Option<Request> {
    let (parts, body) = request.into_parts();
    let header = |name: HeaderName| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let body = Limited::new(body, BODY).collect().await.ok()?.to_bytes();
    Some(Request {
        method: Method::parse(parts.method.as_str())?,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        content_type: header(CONTENT_TYPE),
        accept: header(ACCEPT),
        user: "kubernetes-admin".into(),
        body: body.to_vec(),
    })
}

fn whole(response: Response) -> hyper::Response<Body> {
    let mut out = hyper::Response::new(Full::new(Bytes::from(response.body)).boxed());
    if let Ok(code) = hyper::StatusCode::from_u16(response.code) {
        *out.status_mut() = code;
    }
    let headers = out.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(response.content_type));
    for warning in response.warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            headers.append(WARNING, value);
        }
    }
    out
}

fn streamed(shared: Arc<Shared>, id: WatchId) -> hyper::Response<Body> {
    let changed = shared.revision.subscribe();
    let open = OpenWatch {
        shared,
        id,
        changed,
        ended: false,
    };
    let lines = stream::unfold(open, |mut open| async move {
        let lines = open.next().await?;
        Some((lines, open))
    });
    let frames = lines.map(|lines| Ok(Frame::data(lines)));
    let mut out = hyper::Response::new(BodyExt::boxed(StreamBody::new(frames)));
    out.headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    out
}
