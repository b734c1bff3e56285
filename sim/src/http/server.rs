//! HTTP connections.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT, WARNING};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::live::Live;
use super::player;
use super::stream::OpenWatch;
use crate::status::Failure;
use crate::{Method, Outcome, Request, Response, WatchId};

/// Largest body that is read, in bytes.
const BODY: usize = 3 << 20;

/// What is read of a larger one before the connection is given up, in bytes.
const DRAIN: usize = 8 * BODY;

/// How long to wait after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

type Body = BoxBody<Bytes, Infallible>;

/// Answers connections in plain HTTP and advances the world, until dropped: then the world stops and all
/// connections are closed.
pub async fn serve(listener: TcpListener, live: Arc<Live>) -> Infallible {
    tokio::select! {
        never = accept(&listener, &live) => match never {},
        never = player::play(&live) => match never {},
        never = player::call_webhooks(&live) => match never {},
    }
}

async fn accept(listener: &TcpListener, live: &Arc<Live>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(connection(live.clone(), stream))),
            // a client that is gone already, or no file descriptors: a retry at once does not help
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(live: Arc<Live>, stream: TcpStream) {
    // events are small and must not wait for the acknowledgement of earlier ones; where that cannot be had they do
    let _delayed = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request| respond(live.clone(), request));
    let builder = Builder::new(TokioExecutor::new());
    // a client that breaks off receives no answer
    let _closed = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(
    live: Arc<Live>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Body>, Infallible> {
    let user_agent = header(request.headers(), USER_AGENT);
    let request = match read(request).await {
        Ok(request) => request,
        Err(refusal) => return Ok(whole(refusal)),
    };
    let response = match live.answer(&request).await {
        Some(Outcome::Respond(response)) => whole(response),
        Some(Outcome::Watch(id)) => streamed(live.clone(), id),
        // a call is made by whom its request belongs to, and nothing else comes of a request
        Some(Outcome::Call(_)) | None => whole(Response::text(500, "no answer\n")),
    };
    if let Some(log) = live.audit_log() {
        log.answered(&request, &user_agent, response.status().as_u16());
    }
    Ok(response)
}

/// The text of a header, or nothing.
fn header(headers: &HeaderMap, name: HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

async fn read(request: hyper::Request<Incoming>) -> Result<Request, Response> {
    let (parts, mut body) = request.into_parts();
    let Some(method) = Method::parse(parts.method.as_str()) else {
        return Err(Failure::method_unknown().response());
    };
    let body = match Limited::new(&mut body, BODY).collect().await {
        Ok(read) => read.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            drain(&mut body).await;
            return Err(Failure::too_large(BODY).response());
        }
        Err(_) => return Err(Response::text(400, "bad request\n")),
    };
    Ok(Request {
        method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        content_type: header(&parts.headers, CONTENT_TYPE),
        accept: header(&parts.headers, ACCEPT),
        agent: header(&parts.headers, USER_AGENT),
        user: "kubernetes-admin".into(),
        body: body.to_vec(),
    })
}

/// Reads on for a while: a client that is still sending would not hear the answer.
async fn drain(body: &mut Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > DRAIN {
            break;
        }
    }
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

fn streamed(live: Arc<Live>, id: WatchId) -> hyper::Response<Body> {
    let open = OpenWatch::new(live, id);
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
