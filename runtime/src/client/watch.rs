//! A watch as a sequence of lines.

use bytes::{Buf, BytesMut};
use http::Method;
use http_body_util::BodyExt;
use kube_client::client::Body;

use super::{Client, retry_after};
use crate::ApiError;

/// An open watch.
pub struct WatchLines {
    body: Body,
    buffer: BytesMut,
    /// Bytes of `buffer` known to hold no line end.
    searched: usize,
}

impl Client {
    /// Opens a watch. It has no timeout of its own: ask the server for one with `timeoutSeconds`.
    pub async fn watch(&self, path: &str) -> Result<WatchLines, ApiError> {
        let limit = self.settings.timeout;
        let exchange = self.exchange(&Method::GET, path, None);
        let response = tokio::time::timeout(limit, exchange)
            .await
            .map_err(|_| ApiError::Timeout(limit))??;
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(WatchLines {
                body,
                buffer: BytesMut::new(),
                searched: 0,
            });
        }
        let body = body
            .collect()
            .await
            .map_err(|error| ApiError::Transport(error.to_string()))?;
        let wait = retry_after(&head.headers);
        Err(ApiError::refused(head.status.as_u16(), &body.to_bytes(), wait))
    }
}

impl WatchLines {
    /// The next line without its end; `None` when the server closed the watch after a whole line.
    pub async fn next(&mut self) -> Result<Option<BytesMut>, ApiError> {
        loop {
            let unsearched = self.buffer.iter().skip(self.searched);
            if let Some(offset) = unsearched.copied().position(|byte| byte == b'\n') {
                let line = self.buffer.split_to(self.searched + offset);
                self.buffer.advance(1);
                self.searched = 0;
                if line.is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            match self.body.frame().await {
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
