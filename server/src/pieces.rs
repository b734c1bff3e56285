//! The body of an answer, in pieces: the memory of each is freed as soon as it is sent.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
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
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}
