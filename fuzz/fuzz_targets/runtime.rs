//! Answers of a container runtime: however they are cut into pieces, they mean the same or nothing. The first bytes
//! choose the method, the size of pieces, and the trailers.

#![no_main]

use cri::fuzzing::read;
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(([method, step, trailer], rest)) = data.split_first_chunk() else {
        return;
    };
    let trailer = usize::from(*trailer).min(rest.len());
    let (trailer, body) = rest.split_at(trailer);
    let mut trailers = HeaderMap::new();
    let mut words = trailer.splitn(2, |byte| *byte == b' ');
    for name in ["grpc-status", "grpc-message"] {
        if let Some(Ok(value)) = words.next().map(HeaderValue::from_bytes) {
            trailers.insert(name, value);
        }
    }
    let whole = read(*method, body, body.len(), &trailers);
    let pieces = read(*method, body, usize::from(*step), &trailers);
    assert_eq!(whole.as_ref().ok(), pieces.as_ref().ok(), "{whole:?} {pieces:?}");
});
