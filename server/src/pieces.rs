//! The body of an answer, in pieces: the memory of each is freed as soon as it is sent.

use std::{
    any::Any,
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// What is left to send.
#[derive(Debug, Default)]
pub(crate) struct Pieces(VecDeque<Bytes>);

impl Pieces {
    /// A body that is one piece.
    pub(crate) fn one(piece: impl Into<Bytes>) -> Self {
        Self::of([piece])
    }

    /// A body of several pieces; empty ones are dropped.
    pub(crate) fn of(pieces: impl IntoIterator<Item = impl Into<Bytes>>) -> Self {
        let pieces = pieces.into_iter().map(Into::into);
        Self(pieces.filter(|piece| !piece.is_empty()).collect())
    }
}

impl Pieces {
    /// Bytes that are left.
    pub(crate) fn size(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Drops `guard` when the memory of the last piece is freed: after it is sent, or with its connection. At once if
    /// nothing is left to send.
    pub(crate) fn keep(&mut self, guard: impl Any + Send + Sync) {
        let guard: Arc<dyn Any + Send + Sync> = Arc::new(guard);
        for piece in &mut self.0 {
            let kept = Kept {
                bytes: std::mem::take(piece),
                _guard: guard.clone(),
            };
            *piece = Bytes::from_owner(kept);
        }
    }
}

/// A piece and what is dropped after it.
struct Kept {
    bytes: Bytes,
    _guard: Arc<dyn Any + Send + Sync>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.size() as u64)
    }
}
