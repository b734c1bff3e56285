//! The one message of an answer, out of a body in pieces.

use bytes::{Buf, Bytes};

/// A byte for compression and four for the length.
pub(super) const HEADER: usize = 5;

/// How far the message has come.
#[derive(Debug, Default)]
pub(super) struct Frame {
    header: Vec<u8>,
    /// Bytes of the message that are still to come, once its header is there.
    missing: Option<usize>,
}

/// A body that is no message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Violation {
    #[error("{length} bytes, {limit} are the limit")]
    TooLarge { length: usize, limit: usize },
    #[error("the message is compressed, which was not asked for")]
    Compressed,
    #[error("there is more than one message")]
    Second,
    #[error("there is no message")]
    Empty,
    #[error("the message ends early")]
    Cut,
}

impl Frame {
    /// The part of the message that `data` holds, without copying it.
    pub(super) fn take(&mut self, mut data: Bytes, limit: usize) -> Result<Bytes, Violation> {
        while self.missing.is_none() && data.has_remaining() {
            self.header.push(data.get_u8());
            if let &[compressed, a, b, c, d] = self.header.as_slice() {
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                if compressed != 0 {
                    return Err(Violation::Compressed);
                }
                if length > limit {
                    return Err(Violation::TooLarge { length, limit });
                }
                self.missing = Some(length);
            }
        }
        let Some(missing) = &mut self.missing else {
            return Ok(data);
        };
        *missing = missing.checked_sub(data.len()).ok_or(Violation::Second)?;
        Ok(data)
    }

    /// Whether all of the message was there.
    pub(super) fn end(&self) -> Result<(), Violation> {
        match self.missing {
            Some(0) => Ok(()),
            None if self.header.is_empty() => Err(Violation::Empty),
            _ => Err(Violation::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]], limit: usize) -> Result<Vec<u8>, Violation> {
        let mut frame = Frame::default();
        let mut all = Vec::new();
        for piece in pieces {
            all.extend(frame.take(Bytes::copy_from_slice(piece), limit)?);
        }
        frame.end().map(|()| all)
    }

    #[test]
    fn what_is_not_one_whole_message_is_a_violation() {
        assert_eq!(read(&[], 9), Err(Violation::Empty));
        assert_eq!(read(&[b"\0\0\0"], 9), Err(Violation::Cut));
        assert_eq!(read(&[b"\0\0\0\0\x02a"], 9), Err(Violation::Cut));
        assert_eq!(read(&[b"\0\0\0\0\x01a", b"b"], 9), Err(Violation::Second));
        assert_eq!(read(&[b"\x01\0\0\0\x01a"], 9), Err(Violation::Compressed));
        let large = Violation::TooLarge {
            length: 0xffff_ffff,
            limit: 9,
        };
        assert_eq!(read(&[b"\0\xff\xff\xff\xff"], 9), Err(large));
        assert_eq!(read(&[b"\0\0\0\0\0"], 9), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn a_message_is_read_however_it_is_cut(
            message in prop::collection::vec(any::<u8>(), 0..40),
            cuts in prop::collection::vec(0..45_usize, 0..6),
        ) {
            let mut body = vec![0, 0, 0, 0, message.len() as u8];
            body.extend(&message);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for to in cuts.into_iter().chain([body.len()]) {
                pieces.push(&body[from..to]);
                from = to;
            }
            prop_assert_eq!(read(&pieces, message.len()), Ok(message));
        }
    }
}
