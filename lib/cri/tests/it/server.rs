//! A server that speaks HTTP/2 on a unix socket and answers what a test says, right or wrong.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use cri::{Client, Endpoint, Limits};
use futures::stream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What the server does with a call.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// One message and success.
    Message(Vec<u8>),
    /// No message and this status, in headers only.
    Status(u32, &'static str),
    /// These frames, right or wrong.
    Frames(Vec<Part>),
    /// Nothing, until the call is cancelled.
    Never,
}

/// A part of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Bytes of the body as they are.
    Data(Vec<u8>),
    /// Trailers; after them nothing.
    Trailers(Vec<(&'static str, &'static str)>),
    /// No end of the answer.
    Hang,
}

/// What the server sees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A call came: its path and message.
    Call(String, Vec<u8>),
    /// A call ended before it was answered.
    Cancelled,
}

/// A server; ends with the value, connections and all.
pub(crate) struct Server {
    tasks: JoinSet<()>,
    path: PathBuf,
    answer: Arc<Mutex<Answer>>,
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
    /// The headers of the last call.
    pub(crate) headers: Arc<Mutex<HeaderMap>>,
}

/// A folder of a test's own. It is removed with the value.
pub(crate) struct Folder(PathBuf);

static FOLDERS: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub(crate) fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cri-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("cri.sock")
    }

    /// A client of the socket that waits for an answer as long as a test may take.
    pub(crate) fn client(&self) -> Client {
        self.limited(Limits {
            containers: Duration::from_mins(1),
            images: Duration::from_mins(1),
            ..Limits::default()
        })
    }

    pub(crate) fn limited(&self, limits: Limits) -> Client {
        Client::with_limits(Endpoint::under(self.path(), "cri.sock"), limits)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

impl Server {
    /// Listens at the folder's socket.
    pub(crate) fn start(folder: &Folder, answer: Answer) -> Self {
        let path = folder.socket();
        let listener = UnixListener::bind(&path).unwrap();
        let answer = Arc::new(Mutex::new(answer));
        let headers = Arc::default();
        let (send, events) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&answer), Arc::clone(&headers), send));
        Self {
            tasks,
            path,
            answer,
            events,
            headers,
        }
    }

    /// What it answers from now on.
    pub(crate) fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    /// Ends as a process that is killed: connections break, and the socket is closed.
    pub(crate) async fn vanish(mut self) {
        self.tasks.shutdown().await;
        std::fs::remove_file(&self.path).unwrap();
    }

    /// The message of the next call, which must be one to `path`.
    pub(crate) async fn called(&mut self, path: &str) -> Vec<u8> {
        match self.events.recv().await.unwrap() {
            Event::Call(found, message) => {
                assert_eq!(found, format!("/runtime.v1.{path}"));
                message
            }
            Event::Cancelled => panic!("no call of {path}, but a cancelled one"),
        }
    }
}

async fn accept(
    listener: UnixListener,
    answer: Arc<Mutex<Answer>>,
    headers: Arc<Mutex<HeaderMap>>,
    events: mpsc::UnboundedSender<Event>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (answer, headers, events) = (Arc::clone(&answer), Arc::clone(&headers), events.clone());
        let service = service_fn(move |request| {
            let answer = answer.lock().unwrap().clone();
            serve(request, answer, Arc::clone(&headers), events.clone())
        });
        connections.spawn(async move {
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            // Ends with an error when the client breaks it off.
            let _ended = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn serve(
    request: Request<Incoming>,
    answer: Answer,
    headers: Arc<Mutex<HeaderMap>>,
    events: mpsc::UnboundedSender<Event>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    *headers.lock().unwrap() = request.headers().clone();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let length = u32::from_be_bytes(body[1..5].try_into().unwrap());
    assert_eq!((body[0], length as usize), (0, body.len() - 5));
    let mut guard = Guard(Some(events));
    guard.send(Event::Call(path, body[5..].to_vec()));
    let parts = match answer {
        Answer::Message(message) => whole(&message),
        Answer::Frames(parts) => parts,
        Answer::Status(code, message) => {
            guard.disarm();
            let response = grpc()
                .header("grpc-status", code)
                .header("grpc-message", message)
                .body(body_of(Vec::new(), guard));
            return Ok(response.unwrap());
        }
        Answer::Never => std::future::pending().await,
    };
    if !parts.iter().any(|part| matches!(part, Part::Hang)) {
        guard.disarm();
    }
    Ok(grpc().body(body_of(parts, guard)).unwrap())
}

/// The parts of one message and success.
pub(crate) fn whole(message: &[u8]) -> Vec<Part> {
    vec![
        Part::Data(framed(message)),
        Part::Trailers(vec![("grpc-status", "0")]),
    ]
}

/// A message with its header.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(message.len() as u32);
    bytes.put(message);
    bytes.to_vec()
}

fn grpc() -> http::response::Builder {
    Response::builder().header("content-type", "application/grpc")
}

fn body_of(parts: Vec<Part>, guard: Guard) -> Body {
    let frames = stream::unfold((parts.into_iter(), guard), |(mut parts, guard)| async move {
        let frame = match parts.next()? {
            Part::Data(data) => Frame::data(Bytes::from(data)),
            Part::Trailers(pairs) => {
                let pairs = pairs.into_iter();
                Frame::trailers(
                    pairs
                        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
                        .collect(),
                )
            }
            Part::Hang => std::future::pending().await,
        };
        Some((Ok(frame), (parts, guard)))
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// Reports a call that ends before its answer.
struct Guard(Option<mpsc::UnboundedSender<Event>>);

impl Guard {
    fn send(&self, event: Event) {
        // A test that does not look has dropped the other end.
        let _unread = self.0.as_ref().map(|events| events.send(event));
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.send(Event::Cancelled);
    }
}
