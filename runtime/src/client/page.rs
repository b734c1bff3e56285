//! Pages of lists: how much memory they take.
//!
//! A cache does not know how large the objects of its next page are. So a page has a limit in bytes, and only a few
//! pages that are large are in memory at a time, however many caches begin together: the others wait, and their
//! servers with them.

use std::ops::Deref;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube_client::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::form::Size;
use crate::ApiError;

/// Most bytes of a page, and of an object in a watch. API servers store no object of even half that size.
pub const PAGE_BYTES: usize = 8 << 20;
/// A page of up to this many bytes does not wait.
const SMALL: usize = 1 << 20;
/// Larger pages at a time.
const LARGE_PAGES: usize = 4;

/// The body of an answer, with its place among the large pages.
#[derive(Debug)]
pub struct Page {
    bytes: Bytes,
    _place: Option<OwnedSemaphorePermit>,
}

impl Page {
    /// What was read. It may stay longer than other answers have to wait.
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl Deref for Page {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The places of large pages.
#[derive(Clone, Debug)]
pub(super) struct LargePages(Arc<Semaphore>);

impl Default for LargePages {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_PAGES)))
    }
}

impl LargePages {
    /// Reads the body of an answer.
    pub(super) async fn read(&self, mut body: Body, size: Size) -> Result<Page, ApiError> {
        let transport = |error: kube_client::Error| ApiError::Transport(error.to_string());
        if size == Size::Any {
            let bytes = body.collect().await.map_err(transport)?.to_bytes();
            return Ok(Page { bytes, _place: None });
        }
        let (mut bytes, mut place) = (BytesMut::new(), None);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(transport)?.into_data() else {
                continue;
            };
            let length = bytes.len() + data.len();
            if length > PAGE_BYTES {
                return Err(ApiError::TooLarge(PAGE_BYTES));
            }
            if length > SMALL && place.is_none() {
                // It is never closed.
                place = self.0.clone().acquire_owned().await.ok();
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Page {
            bytes: bytes.freeze(),
            _place: place,
        })
    }
}
