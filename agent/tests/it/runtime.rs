//! A container runtime at a unix socket.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use crate::wire;

/// How pulls go.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Course {
    /// The image is there.
    #[default]
    Succeeds,
    /// The registry wants this password.
    Wants(&'static str),
    /// Nothing happens until the call is cancelled.
    Hangs,
}

/// What the node has, and what happened to it.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) images: Vec<wire::Image>,
    pub(crate) course: Course,
    pub(crate) pulls: Vec<wire::PullRequest>,
    /// Calls that were cancelled.
    pub(crate) cancelled: usize,
    /// Lists of images are no messages.
    pub(crate) garbage: bool,
    pub(crate) mountpoint: String,
    pub(crate) containers: Vec<wire::Container>,
    /// IDs of those whose status cannot be read.
    pub(crate) unreadable: BTreeSet<String>,
    /// What `env` prints, by containers.
    pub(crate) environments: BTreeMap<String, String>,
    /// Exit codes and outputs of other commands. Those that are not listed end well.
    pub(crate) commands: BTreeMap<String, (i32, String)>,
    /// Does the list say that a container has ended once it was stopped?
    pub(crate) ends_when_stopped: bool,
    /// Commands that ran and containers that were stopped, in order.
    pub(crate) acts: Vec<String>,
}

/// A runtime; ends with the value, connections and all.
pub(crate) struct Runtime {
    tasks: JoinSet<()>,
    path: PathBuf,
    state: Arc<Mutex<State>>,
}

enum Reply {
    Message(Vec<u8>),
    Status(u32, &'static str),
    Never,
}

fn message(message: &impl Message) -> Reply {
    Reply::Message(message.encode_to_vec())
}

impl Runtime {
    /// Listens at a socket.
    pub(crate) fn start(path: &Path) -> Self {
        Self::with(path, Arc::default())
    }

    fn with(path: &Path, state: Arc<Mutex<State>>) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&state)));
        Self {
            tasks,
            path: path.to_owned(),
            state,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Ends as a process that is killed: connections break, and the socket is gone.
    pub(crate) async fn vanish(&mut self) {
        self.tasks.shutdown().await;
        std::fs::remove_file(&self.path).unwrap();
    }

    /// Comes back with what it had.
    pub(crate) fn come_back(&mut self) {
        *self = Self::with(&self.path, Arc::clone(&self.state));
    }
}

async fn accept(listener: UnixListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let state = Arc::clone(&state);
        let service = service_fn(move |request| serve(request, Arc::clone(&state)));
        connections.spawn(async move {
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            // Ends with an error when the client breaks it off.
            let _ended = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Counts a call that ends before its answer.
struct Unanswered(Option<Arc<Mutex<State>>>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(state) = &self.0 {
            state.lock().unwrap().cancelled += 1;
        }
    }
}

async fn serve(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let reply = answer(&mut state.lock().unwrap(), &path, &body[5..]);
    let (message, status, text) = match reply {
        Reply::Message(message) => (Some(message), 0, ""),
        Reply::Status(code, text) => (None, code, text),
        Reply::Never => {
            let _unanswered = Unanswered(Some(state));
            std::future::pending().await
        }
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.into());
    trailers.insert("grpc-message", HeaderValue::from_static(text));
    let framed = message.map(|message| {
        let mut bytes = BytesMut::new();
        bytes.put_u8(0);
        bytes.put_u32(u32::try_from(message.len()).unwrap());
        bytes.put(message.as_slice());
        Frame::data(bytes.freeze())
    });
    let frames = framed.into_iter().chain([Frame::trailers(trailers)]);
    let body = StreamBody::new(stream::iter(frames.map(Ok)));
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(BodyExt::boxed_unsync(body)).unwrap())
}

fn answer(state: &mut State, path: &str, body: &[u8]) -> Reply {
    match path.trim_start_matches("/runtime.v1.") {
        "RuntimeService/Version" => message(&wire::About {
            version: "0.1.0".into(),
            runtime_name: "containerd".into(),
            runtime_version: "2.1.0".into(),
            runtime_api_version: "v1".into(),
        }),
        "ImageService/ImageFsInfo" => message(&wire::Filesystems {
            image_filesystems: vec![wire::FilesystemUsage {
                fs_id: Some(wire::Mountpoint {
                    mountpoint: state.mountpoint.clone(),
                }),
            }],
        }),
        // Field 1 is said to be longer than the message.
        "ImageService/ListImages" if state.garbage => Reply::Message(b"\x0a\xff\xffgarbage".to_vec()),
        "ImageService/ListImages" => message(&wire::Images {
            images: state.images.clone(),
        }),
        "ImageService/PullImage" => pull(state, wire::PullRequest::decode(body).unwrap()),
        "RuntimeService/ListContainers" => {
            let request = wire::ListContainersRequest::decode(body).unwrap();
            let wanted = request.filter.unwrap().label_selector;
            let has = |one: &&wire::Container| {
                wanted
                    .iter()
                    .all(|(key, value)| one.labels.get(key) == Some(value))
            };
            message(&wire::Containers {
                containers: state.containers.iter().filter(has).cloned().collect(),
            })
        }
        "RuntimeService/ContainerStatus" => {
            let request = wire::StatusRequest::decode(body).unwrap();
            let mut all = state.containers.iter();
            match all.find(|one| one.id == request.container_id) {
                None => Reply::Status(5, "no such container"),
                Some(one) if state.unreadable.contains(&one.id) => {
                    Reply::Status(2, "its state cannot be read")
                }
                // A container starts two seconds after it was created.
                Some(one) => message(&wire::StatusResponse {
                    status: Some(wire::ContainerStatus {
                        id: one.id.clone(),
                        state: one.state,
                        created_at: one.created_at,
                        started_at: one.created_at + 2_000_000_000,
                    }),
                }),
            }
        }
        "RuntimeService/ExecSync" => {
            let request = wire::ExecRequest::decode(body).unwrap();
            if request.cmd == ["env"] {
                let printed = state.environments.get(&request.container_id);
                return message(&wire::ExecResponse {
                    exit_code: if printed.is_some() { 0 } else { 127 },
                    stdout: printed.cloned().unwrap_or_default().into(),
                    stderr: Vec::new(),
                });
            }
            let command = request.cmd.join(" ");
            state.acts.push(format!("{}: {command}", request.container_id));
            let (exit_code, output) = state.commands.get(&command).cloned().unwrap_or_default();
            let (stdout, stderr) = if exit_code == 0 {
                (output, String::new())
            } else {
                (String::new(), output)
            };
            message(&wire::ExecResponse {
                exit_code,
                stdout: stdout.into(),
                stderr: stderr.into(),
            })
        }
        "RuntimeService/StopContainer" => {
            let request = wire::StopRequest::decode(body).unwrap();
            let act = format!("{}: stop", request.container_id);
            state.acts.push(act);
            if state.ends_when_stopped {
                let mut all = state.containers.iter_mut();
                let stopped = all.find(|one| one.id == request.container_id);
                stopped.unwrap().state = 2;
            }
            Reply::Message(Vec::new())
        }
        other => panic!("no call of this interface: {other}"),
    }
}

fn pull(state: &mut State, request: wire::PullRequest) -> Reply {
    let image = request.image.clone().unwrap().image;
    let auth = request.auth.clone();
    state.pulls.push(request);
    match state.course {
        Course::Hangs => return Reply::Never,
        Course::Wants(password) if auth.is_none_or(|auth| auth.password != password) => {
            return Reply::Status(2, "unexpected status from HEAD request: 401 Unauthorized");
        }
        Course::Wants(_) | Course::Succeeds => {}
    }
    let id = format!("sha256:{:064x}", state.images.len() + 1);
    let tag = if image.contains('/') {
        image
    } else {
        format!("docker.io/library/{image}")
    };
    state.images.push(wire::Image {
        id: id.clone(),
        repo_tags: vec![tag],
    });
    message(&wire::PullResponse { image_ref: id })
}
