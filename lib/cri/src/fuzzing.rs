//! Answers of a runtime without a runtime, for fuzz targets.

use std::fmt::Debug;

use bytes::Bytes;
use http::HeaderMap;

use crate::grpc::{Answer, Beginnings, Each, Sink, Whole};
use crate::{Container, ContainerStatus, Error, Image, messages as wire};

/// Most bytes of a message.
const MESSAGE: usize = 1 << 20;

/// What the caller of the method of this number gets from a body that arrives in pieces of `step` bytes and ends
/// with these trailers, as text.
///
/// # Errors
/// See [`Error`].
pub fn read(method: u8, body: &[u8], step: usize, trailers: &HeaderMap) -> Result<String, Error> {
    let wire = Wire { body, step, trailers };
    match method % 7 {
        0 => wire.read(Each::new(
            Vec::new(),
            |all: &mut Vec<Container>, one: wire::Container| {
                all.push(one.into());
            },
        )),
        1 => wire.read(Each::new(Vec::new(), |all: &mut Vec<Image>, one: wire::Image| {
            all.push(one.into());
        })),
        2 => wire.read(Beginnings::new(64)),
        3 => {
            let sink = Whole::<wire::ContainerStatusResponse>::new();
            let found = wire.sink(sink)?.status.map(ContainerStatus::from);
            Ok(format!("{found:?}"))
        }
        4 => {
            let sink = Whole::<wire::ImageStatusResponse>::new();
            let found = wire.sink(sink)?.image.map(Image::from);
            Ok(format!("{found:?}"))
        }
        5 => wire.read(Whole::<wire::ImageFsInfoResponse>::new()),
        _ => wire.read(Whole::<wire::VersionResponse>::new()),
    }
}

struct Wire<'a> {
    body: &'a [u8],
    step: usize,
    trailers: &'a HeaderMap,
}

impl Wire<'_> {
    fn sink<S: Sink>(&self, sink: S) -> Result<S::Output, Error> {
        let mut answer = Answer::new(MESSAGE, sink);
        for piece in self.body.chunks(self.step.max(1)) {
            answer.take(Bytes::copy_from_slice(piece))?;
        }
        answer.end(Some(self.trailers))
    }

    fn read<S: Sink<Output: Debug>>(&self, sink: S) -> Result<String, Error> {
        Ok(format!("{:?}", self.sink(sink)?))
    }
}
