//! A watch as a sequence of lines.
//!
//! A broken connection without a close cannot be distinguished from a watch without events. So a watch without data for
//! longer than the interval of bookmarks, or open for longer than its requested duration, ends with
//! [`ApiError::Timeout`]. It may have been intact; the caller opens a new one. A line that is larger than a page may be
//! ends it with [`ApiError::TooLarge`].

use std::io::BufRead;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http::Method;
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Client, Form, PAGE_BYTES, retry_after};
use crate::ApiError;

/// Longest time without data. Servers send a bookmark about once a minute, but do not guarantee it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(150);
/// Time that a server may exceed the requested duration by.
const GRACE: Duration = Duration::from_secs(30);

/// An open watch.
pub struct WatchLines {
    body: Body,
    buffer: BytesMut,
    /// Bytes of `buffer` without a line end.
    searched: usize,
    /// The server closes the watch before this time if the connection is intact.
    end: Instant,
}

impl Client {
    /// Opens a watch. `duration` is the one that `timeoutSeconds` in the path requests.
    pub async fn watch(&self, path: &str, form: Form, duration: Duration) -> Result<WatchLines, ApiError> {
        let limit = self.settings.timeout;
        let opening = async {
            let (head, body) = self
                .exchange(&Method::GET, path, form.of_watches(), None)
                .await?
                .into_parts();
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
            end: Instant::now() + duration + GRACE,
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
            if self.buffer.len() > PAGE_BYTES {
                return Err(ApiError::TooLarge(PAGE_BYTES));
            }
            self.searched = self.buffer.len();
            let started = Instant::now();
            let frame = timeout_at(self.end.min(started + IDLE_TIMEOUT), self.body.frame());
            match frame.await.map_err(|_| ApiError::Timeout(started.elapsed()))? {
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

/// The position of the first line end; the bytes before `searched` have none.
fn line_end(buffer: &[u8], searched: usize) -> Option<usize> {
    let mut rest = buffer.get(searched..)?;
    // Reading a slice does not fail, and the search of the standard library compares many bytes at once.
    let last = searched + rest.skip_until(b'\n').ok()?.checked_sub(1)?;
    (buffer.get(last) == Some(&b'\n')).then_some(last)
}
