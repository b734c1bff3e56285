//! A watch as a sequence of lines.
//!
//! A connection whose other end is gone without a word looks like a watch on which nothing happens. So a watch that is
//! silent for longer than bookmarks allow, or open for longer than the server was asked to keep it, ends with
//! [`ApiError::Timeout`]: nothing is known to be wrong, but only a new watch can tell.

use std::io::BufRead;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http::Method;
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Client, retry_after};
use crate::ApiError;

/// Longest silence. Servers send a bookmark about once a minute, but promise none.
const SILENCE: Duration = Duration::from_secs(150);
/// What a server may take beyond the time it was asked for.
const GRACE: Duration = Duration::from_secs(30);

/// An open watch.
pub struct WatchLines {
    body: Body,
    buffer: BytesMut,
    /// Bytes of `buffer` known to hold no line end.
    searched: usize,
    /// The server has closed it by then, if the server is there.
    end: Instant,
}

impl Client {
    /// Opens a watch. `lasting` is the time that `timeoutSeconds` in the path asks for.
    pub async fn watch(&self, path: &str, lasting: Duration) -> Result<WatchLines, ApiError> {
        let limit = self.settings.timeout;
        let opening = async {
            let (head, body) = self.exchange(&Method::GET, path, None).await?.into_parts();
            if head.status.is_success() {
                return Ok(body);
            }
            let body = body
                .collect()
                .await
                .map_err(|error| ApiError::Transport(error.to_string()))?;
            let wait = retry_after(&head.headers);
            Err(ApiError::refused(head.status.as_u16(), &body.to_bytes(), wait))
        };
        let body = timeout(limit, opening)
            .await
            .map_err(|_| ApiError::Timeout(limit))??;
        Ok(WatchLines {
            body,
            buffer: BytesMut::new(),
            searched: 0,
            end: Instant::now() + lasting + GRACE,
        })
    }
}

impl WatchLines {
    /// The next line without its end; `None` when the server closed the watch after a whole line.
    pub async fn next(&mut self) -> Result<Option<BytesMut>, ApiError> {
        loop {
            if let Some(end) = line_end(&self.buffer, self.searched) {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                self.searched = 0;
                if line.is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            let asked = Instant::now();
            let frame = timeout_at(self.end.min(asked + SILENCE), self.body.frame());
            match frame.await.map_err(|_| ApiError::Timeout(asked.elapsed()))? {
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(ApiError::Transport("watch cut within an event".to_owned())),
                Some(Err(error)) => return Err(ApiError::Transport(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

/// Where the first line end is, of which none is before `searched`.
fn line_end(buffer: &[u8], searched: usize) -> Option<usize> {
    let mut rest = buffer.get(searched..)?;
    // Memory is always read, and the search is that of the standard library: many bytes at once.
    let last = searched + rest.skip_until(b'\n').ok()?.checked_sub(1)?;
    (buffer.get(last) == Some(&b'\n')).then_some(last)
}
