//! Accepting connections, and getting rid of them again.
//!
//! Invariants: there are never more than [`Limits::connections`] connections; every phase of a connection has an
//! end, so one that sends nothing, sends slowly or does not read its answers is closed; after the stop signal no
//! connection is accepted and those in flight have [`Limits::drain`] to finish.

use std::{
    convert::Infallible,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::tls::Tls;

/// What one listener grants its peers.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time; further ones are closed at once.
    pub connections: usize,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time until the headers of the first request are complete; on HTTP/1.1, of every request.
    pub header: Duration,
    /// Time until the body is complete.
    pub body: Duration,
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
            idle: Duration::from_secs(90),
            drain: Duration::from_secs(30),
        }
    }
}

/// The answers of this crate are small or already in memory.
pub(crate) type Answer = Response<Full<Bytes>>;

/// What answers requests.
pub(crate) trait Respond: Send + Sync + 'static {
    /// Answers one request.
    fn respond(&self, request: Request<Incoming>) -> impl Future<Output = Answer> + Send;
}

/// A plain-text answer.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain; charset=utf-8", text)
}

/// An answer of the given content type.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let value = HeaderValue::from_static(content_type);
    answer.headers_mut().insert(CONTENT_TYPE, value);
    answer
}

/// Serves until `stop` turns true or its sender is gone, then drains.
pub(crate) async fn run<R: Respond>(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    respond: Arc<R>,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    // Half of the threads at most sign for new connections; the other half answers the existing ones.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let turns = Arc::new(Semaphore::new((threads / 2).max(1)));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if connections.len() < limits.connections => {
                let (tls, turns, respond) = (tls.clone(), turns.clone(), respond.clone());
                connections.spawn(connection(
                    stream,
                    tls,
                    turns,
                    respond,
                    limits.clone(),
                    stop.clone(),
                ));
            }
            Ok((_, peer)) => tracing::warn!(%peer, "too many connections, closing one"),
            Err(error) => {
                // Out of file descriptors, mostly: they come back as connections end, but not by asking at once.
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.drain, drained).await.is_err() {
        tracing::warn!(count = connections.len(), "closing connections still in use");
    }
    connections.shutdown().await;
}

/// Resolves once the process is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could stop us is gone, which is a stop as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection<R: Respond>(
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
    turns: Arc<Semaphore>,
    respond: Arc<R>,
    limits: Limits,
    stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let builder = Builder::new(TokioExecutor::new());
    let Some(tls) = tls else {
        return drive(builder.http1_only(), stream, respond, &limits, stop).await;
    };
    let handshake = timeout(limits.handshake, tls.accept(stream, &turns)).await;
    match handshake.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) => {
            let builder = match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => builder.http2_only(),
                _ => builder.http1_only(),
            };
            drive(builder, stream, respond, &limits, stop).await;
        }
        Err(error) => tracing::debug!(%error, "TLS handshake failed"),
    }
}

async fn drive<R: Respond>(
    mut builder: Builder<TokioExecutor>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    respond: Arc<R>,
    limits: &Limits,
    mut stop: watch::Receiver<bool>,
) {
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(limits.header);
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30));
    http2.max_concurrent_streams(128);

    let activity = Arc::new(Activity::new(limits));
    let service = service_fn(|request| {
        let (respond, busy) = (respond.clone(), Activity::begin(&activity));
        async move {
            let answer = respond.respond(request).await;
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
        () = stopped(&mut stop) => limits.drain,
    };
    connection.as_mut().graceful_shutdown();
    let _ = timeout(grace, connection).await;
}

/// When a connection was last in use.
struct Activity {
    idle: Duration,
    state: Mutex<State>,
}

struct State {
    in_flight: usize,
    /// When to give up if nothing is in flight then.
    due: Instant,
}

struct Busy(Arc<Activity>);

impl Activity {
    fn new(limits: &Limits) -> Self {
        let state = Mutex::new(State {
            in_flight: 0,
            due: Instant::now() + limits.header,
        });
        Self {
            idle: limits.idle,
            state,
        }
    }

    fn begin(this: &Arc<Self>) -> Busy {
        this.with(|state| state.in_flight += 1);
        Busy(this.clone())
    }

    fn with<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Resolves when the connection has been without a request for too long.
    async fn idle(&self) {
        loop {
            let now = Instant::now();
            let due = self.with(|state| match state.in_flight {
                0 => state.due,
                _ => now + self.idle,
            });
            if due <= now {
                return;
            }
            sleep_until(due).await;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let due = Instant::now() + self.0.idle;
        self.0.with(|state| {
            state.in_flight = state.in_flight.saturating_sub(1);
            state.due = due;
        });
    }
}
