//! HTTP/2 by hand, for clients that do what a library would not.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
/// Of [`DATA`] and [`HEADERS`].
pub(crate) const END_STREAM: u8 = 1;
/// Of [`SETTINGS`] and [`PING`].
pub(crate) const ACK: u8 = 1;
/// Of [`HEADERS`].
pub(crate) const END_HEADERS: u8 = 4;

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A setting of the client: its number and its value.
pub(crate) fn setting(number: u16, value: u32) -> Vec<u8> {
    let mut payload = number.to_be_bytes().to_vec();
    payload.extend(value.to_be_bytes());
    frame(SETTINGS, 0, 0, &payload)
}

/// The head of a request that posts JSON.
pub(crate) fn post_head(stream: u32, path: &str, length: usize) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "svc.ns.svc"),
        (":path", path),
        ("content-type", "application/json"),
        ("content-length", &length.to_string()),
    ] {
        // Literal without indexing and without compression.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// The next frame; `None` when the server has closed the connection.
pub(crate) async fn next(stream: &mut (impl AsyncRead + Unpin)) -> Option<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let [a, b, c, kind, flags, ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some(Frame { kind, flags, payload })
}

/// Reads until the server closes the connection, and acknowledges what a client has to. Returns the kinds of all
/// frames.
pub(crate) async fn until_closed(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let Some(found) = next(stream).await {
        kinds.push(found.kind);
        if found.flags & ACK == 0 && [SETTINGS, PING].contains(&found.kind) {
            let payload = if found.kind == PING {
                found.payload
            } else {
                Vec::new()
            };
            let _closed = stream.write_all(&frame(found.kind, ACK, 0, &payload)).await;
        }
    }
    kinds
}
