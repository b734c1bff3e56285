//! Accepts and closes connections.
//!
//! Invariants: there are never more than [`Limits::connections`] connections, and a few more that are closing; a peer
//! that holds few of them can always open another; every phase of a connection has an end, so one that sends nothing,
//! sends slowly or does not read its answers is closed; after the stop signal no further connection is accepted,
//! clients are told to use another one (GOAWAY in HTTP/2), and requests in flight have [`Limits::drain`] to finish.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};

use crate::{activity::Activity, connections::Connections, pieces::Pieces, tls::Tls};

/// Requests at a time on a connection of HTTP/2.
const STREAMS: u32 = 100;

/// Bytes of the headers of a request of HTTP/2.
const HEADERS: u32 = 8 << 10;

/// Bytes of bodies that a client of HTTP/2 may send before they are read.
const WINDOW: u32 = 128 << 10;

/// The same in HTTP/1.
const BUFFER: usize = 64 << 10;

/// Limits of one listener.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time. For a further one, a connection of the peer that holds most is closed.
    pub connections: usize,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time until the headers of the first request are complete; on HTTP/1.1, of every request.
    pub header: Duration,
    /// Time until the body is complete.
    pub body: Duration,
    /// Time a body waits until there is room for it.
    pub room: Duration,
    /// Bytes that reviews may take together: their bodies until they are decided, then their answers until they are
    /// sent.
    pub reviews: usize,
    /// As [`Limits::reviews`], for conversions.
    pub conversions: usize,
    /// Bytes that what is read of bodies may take together: reviews, and objects that are being converted.
    pub trees: usize,
    /// Time until the client has taken an answer; then the connection is cut off.
    pub answer: Duration,
    /// Time without a request in flight after which a connection is closed.
    pub idle: Duration,
    /// Time for requests in flight after the stop signal.
    pub drain: Duration,
}

/// Memory of a process without a limit: as the printed deployment and the chart give it.
const MEMORY: usize = 512 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self::within(MEMORY)
    }
}

impl Limits {
    /// For a process with this much memory: less than a half of it is for requests, as an allocator takes more than
    /// it gives.
    pub fn within(memory: usize) -> Self {
        Self {
            connections: 512,
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(10),
            body: Duration::from_secs(30),
            // Half of what an API server waits for a review.
            room: Duration::from_secs(5),
            reviews: memory / 16,
            conversions: memory / 16 * 3,
            trees: memory / 16 * 3,
            answer: Duration::from_secs(30),
            idle: Duration::from_secs(90),
            drain: Duration::from_secs(30),
        }
    }
}

/// The answers of this crate are small or already in memory.
pub(crate) type Answer = Response<Pieces>;

/// Handler of requests.
pub(crate) trait Respond: Send + Sync + 'static {
    /// Answers one request.
    fn respond(&self, caller: &Caller, request: Request<Incoming>) -> impl Future<Output = Answer> + Send;
}

/// Where a request came from.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Address without the port.
    pub(crate) peer: IpAddr,
    /// The connection.
    pub(crate) activity: Arc<Activity>,
    /// Has it shown a certificate, or was none asked for?
    pub(crate) is_known: bool,
}

/// A plain-text answer.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain; charset=utf-8", Pieces::one(text))
}

/// An answer of the given content type.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: Pieces) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let value = HeaderValue::from_static(content_type);
    answer.headers_mut().insert(CONTENT_TYPE, value);
    answer
}

/// Serves until `stop` becomes true or its sender is dropped, then drains.
pub(crate) async fn run<R: Respond>(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    respond: Arc<R>,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    // At most half of the threads sign for new connections; the other half answers the existing ones.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let permits = Arc::new(Semaphore::new((threads / 2).max(1)));
    let stopping = stop.clone();
    let mut connections = Connections::new(limits.connections);
    let serve = |connections: &mut Connections, stream: TcpStream, peer: SocketAddr| {
        let peer = peer.ip().to_canonical();
        if !connections.make_room(peer) {
            tracing::debug!(%peer, "too many connections in use by this peer, closing one");
            return;
        }
        let (tls, permits, respond) = (tls.clone(), permits.clone(), respond.clone());
        let (limits, stop) = (limits.clone(), stopping.clone());
        let activity = Arc::new(Activity::new(&limits));
        let caller = Caller {
            peer,
            activity: activity.clone(),
            is_known: true,
        };
        let connection = connection(stream, tls, permits, respond, limits, caller, stop);
        connections.spawn(peer, activity, connection);
    };
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            () = connections.ended() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => serve(&mut connections, stream, peer),
            Err(error) => {
                // Usually out of file descriptors. They are freed as connections end, so a retry at once would fail
                // too.
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    // Closing the listener resets connections that clients have opened and that were not accepted yet: they are served,
    // too.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, peer)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                serve(&mut connections, stream, peer);
            }
        }
    }
    connections.drain(limits.drain).await;
}

/// Resolves once the process is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped, which is a stop as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection<R: Respond>(
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
    permits: Arc<Semaphore>,
    respond: Arc<R>,
    limits: Limits,
    mut caller: Caller,
    stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let builder = Builder::new(TokioExecutor::new());
    let Some(tls) = tls else {
        return drive(builder.http1_only(), stream, respond, &limits, caller, stop).await;
    };
    let handshake = tokio::select! {
        handshake = timeout(limits.handshake, tls.accept(stream, &permits)) => handshake,
        () = caller.activity.closing() => return,
    };
    match handshake.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) => {
            let shows_one = stream.get_ref().1.peer_certificates().is_some();
            caller.is_known = shows_one || !tls.asks_clients();
            let builder = match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => builder.http2_only(),
                _ => builder.http1_only(),
            };
            drive(builder, stream, respond, &limits, caller, stop).await;
        }
        Err(error) => tracing::debug!(%error, "TLS handshake failed"),
    }
}

async fn drive<R: Respond>(
    mut builder: Builder<TokioExecutor>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    respond: Arc<R>,
    limits: &Limits,
    caller: Caller,
    mut stop: watch::Receiver<bool>,
) {
    // What a connection may hold beside the memory that requests are granted is small, as there may be many.
    let mut http1 = builder.http1();
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_buf_size(BUFFER);
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);

    let activity = &caller.activity;
    activity.ready();
    let service = service_fn(|request| {
        let (respond, caller, busy) = (respond.clone(), caller.clone(), Activity::begin(activity));
        async move {
            let mut answer = respond.respond(&caller, request).await;
            busy.answered();
            answer.body_mut().keep(busy);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let ends = async {
        let mut connection = std::pin::pin!(connection);
        let grace = tokio::select! {
            outcome = connection.as_mut() => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "connection failed");
                }
                return;
            }
            () = activity.idle() => limits.handshake,
            () = activity.closing() => limits.handshake,
            () = stopped(&mut stop) => limits.drain,
        };
        connection.as_mut().graceful_shutdown();
        let _ = timeout(grace, connection).await;
    };
    tokio::select! {
        () = ends => {}
        () = activity.is_cut() => tracing::debug!(peer = %caller.peer, "cut off with answers that it did not take"),
    }
}
