//! Accepts and closes connections.
//!
//! Invariants: there are never more than [`Limits::connections`] connections, and a few more that are closing; a peer
//! that holds few of them can always open another; every phase of a connection has an end, so one that sends nothing,
//! sends slowly or does not read its answers is closed; after the stop signal no further connection is accepted, clients
//! are told to use another one (GOAWAY in HTTP/2), and requests in flight have [`Limits::drain`] to finish.

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
    /// Bytes that the bodies of reviews may take together.
    pub reviews: usize,
    /// Bytes that the bodies of conversions may take together; their answers take about as much again.
    pub conversions: usize,
    /// Time without a request in flight after which a connection is closed.
    pub idle: Duration,
    /// Time for requests in flight after the stop signal.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(10),
            body: Duration::from_secs(30),
            // Half of what an API server waits for a review.
            room: Duration::from_secs(5),
            reviews: 64 << 20,
            conversions: 256 << 20,
            idle: Duration::from_secs(90),
            drain: Duration::from_secs(30),
        }
    }
}

/// The answers of this crate are small or already in memory.
pub(crate) type Answer = Response<Pieces>;

/// Handler of requests.
pub(crate) trait Respond: Send + Sync + 'static {
    /// Answers one request of the peer with this address.
    fn respond(&self, peer: IpAddr, request: Request<Incoming>) -> impl Future<Output = Answer> + Send;
}

/// Handler of the requests of one peer.
struct OfPeer<R> {
    peer: IpAddr,
    respond: Arc<R>,
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
        let respond = OfPeer { peer, respond };
        let connection = connection(stream, tls, permits, respond, limits, activity.clone(), stop);
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
                // Usually out of file descriptors. They are freed as connections end, so a retry at once would fail too.
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
    respond: OfPeer<R>,
    limits: Limits,
    activity: Arc<Activity>,
    stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let builder = Builder::new(TokioExecutor::new());
    let Some(tls) = tls else {
        return drive(builder.http1_only(), stream, respond, &limits, activity, stop).await;
    };
    let handshake = tokio::select! {
        handshake = timeout(limits.handshake, tls.accept(stream, &permits)) => handshake,
        () = activity.closing() => return,
    };
    match handshake.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) => {
            let builder = match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => builder.http2_only(),
                _ => builder.http1_only(),
            };
            drive(builder, stream, respond, &limits, activity, stop).await;
        }
        Err(error) => tracing::debug!(%error, "TLS handshake failed"),
    }
}

async fn drive<R: Respond>(
    mut builder: Builder<TokioExecutor>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    respond: OfPeer<R>,
    limits: &Limits,
    activity: Arc<Activity>,
    mut stop: watch::Receiver<bool>,
) {
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(limits.header);
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30));
    http2.max_concurrent_streams(128);

    activity.ready();
    let peer = respond.peer;
    let service = service_fn(|request| {
        let (respond, busy) = (respond.respond.clone(), Activity::begin(&activity));
        async move {
            let answer = respond.respond(peer, request).await;
            drop(busy);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
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
}
