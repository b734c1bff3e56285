//! Connections to a unix socket, whatever address is asked for.

use std::future::Future;
use std::io::{self, IoSlice};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tower::Service;

#[derive(Clone, Debug)]
pub(super) struct UnixConnector {
    path: Arc<Path>,
    /// How many connections have ended.
    ended: watch::Sender<u64>,
}

impl UnixConnector {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            ended: watch::Sender::new(0),
        }
    }

    /// Counts connections that end.
    pub(super) fn ended(&self) -> watch::Sender<u64> {
        self.ended.clone()
    }
}

impl Service<Uri> for UnixConnector {
    type Response = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { path, ended } = self.clone();
        Box::pin(async move {
            let stream = TokioIo::new(UnixStream::connect(&path).await?);
            Ok(Stream { stream, ended })
        })
    }
}

/// A connection. HTTP/2 reads it all the time, and drops it when the peer has closed it.
#[derive(Debug)]
pub(super) struct Stream {
    stream: TokioIo<UnixStream>,
    ended: watch::Sender<u64>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.ended.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
