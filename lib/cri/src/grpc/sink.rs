//! What becomes of a message while it arrives.

use std::marker::PhantomData;

use bytes::{Buf, Bytes, BytesMut};
use prost::{DecodeError, Message};

use super::wire::{self, Field};

/// Bytes that are not the message that was to come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Undecodable(pub(super) String);

impl From<DecodeError> for Undecodable {
    fn from(error: DecodeError) -> Self {
        Self(error.to_string())
    }
}

/// Takes a message in pieces.
pub(crate) trait Sink {
    /// What the message becomes.
    type Output;

    /// Takes the next piece.
    fn push(&mut self, piece: Bytes) -> Result<(), Undecodable>;

    /// The message is complete.
    fn finish(self) -> Result<Self::Output, Undecodable>;
}

/// Keeps all bytes and decodes them in the end.
#[derive(Debug)]
pub(crate) struct Whole<M> {
    bytes: BytesMut,
    message: PhantomData<M>,
}

impl<M> Whole<M> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: BytesMut::new(),
            message: PhantomData,
        }
    }
}

impl<M: Message + Default> Sink for Whole<M> {
    type Output = M;

    fn push(&mut self, piece: Bytes) -> Result<(), Undecodable> {
        self.bytes.extend_from_slice(&piece);
        Ok(())
    }

    fn finish(self) -> Result<M, Undecodable> {
        Ok(M::decode(self.bytes.freeze())?)
    }
}

/// Decodes the messages in field 1 as they come, and hands each of them to a function with the value that it builds.
/// Other fields are skipped. Holds no more than one of these messages and a piece.
#[derive(Debug)]
pub(crate) struct Each<M, T, F> {
    /// The beginning of a field that is not all here.
    rest: BytesMut,
    /// Bytes still to come of a field that is not wanted.
    skip: usize,
    value: T,
    add: F,
    message: PhantomData<M>,
}

/// The field that repeats.
const REPEATED: u32 = 1;

impl<M: Message + Default, T, F: FnMut(&mut T, M)> Each<M, T, F> {
    pub(crate) fn new(value: T, add: F) -> Self {
        Self {
            rest: BytesMut::new(),
            skip: 0,
            value,
            add,
            message: PhantomData,
        }
    }
}

impl<M: Message + Default, T, F: FnMut(&mut T, M)> Sink for Each<M, T, F> {
    type Output = T;

    fn push(&mut self, piece: Bytes) -> Result<(), Undecodable> {
        self.rest.extend_from_slice(&piece);
        loop {
            let skipped = self.skip.min(self.rest.len());
            self.rest.advance(skipped);
            self.skip -= skipped;
            let Some((field, prefix)) = wire::next(&self.rest)? else {
                return Ok(());
            };
            match field {
                Field::Bytes {
                    field: REPEATED,
                    length,
                } => {
                    let Some(bytes) = self.rest.get(prefix..prefix + length) else {
                        return Ok(());
                    };
                    (self.add)(&mut self.value, M::decode(bytes)?);
                    self.rest.advance(prefix + length);
                }
                other if other.number() == REPEATED => return Err(misplaced(REPEATED)),
                other => self.skip = prefix + other.length(),
            }
        }
    }

    fn finish(self) -> Result<T, Undecodable> {
        if self.rest.is_empty() && self.skip == 0 {
            Ok(self.value)
        } else {
            Err(cut())
        }
    }
}

/// Keeps the beginnings of the fields 1 and 2, which are bytes, and the number in field 3: a command's output,
/// error output and exit code. Other fields are skipped.
#[derive(Debug, Default)]
pub(crate) struct Beginnings {
    most: usize,
    rest: BytesMut,
    /// The field whose bytes come now, and how many are still to come.
    open: (u32, usize),
    first: Vec<u8>,
    second: Vec<u8>,
    number: u64,
}

impl Beginnings {
    /// Keeps at most `most` bytes of each field.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let kept = match self.open.0 {
            1 => &mut self.first,
            2 => &mut self.second,
            _ => return,
        };
        let room = self.most.saturating_sub(kept.len()).min(piece.len());
        kept.extend_from_slice(piece.split_at(room).0);
    }
}

impl Sink for Beginnings {
    type Output = (Vec<u8>, Vec<u8>, i32);

    fn push(&mut self, piece: Bytes) -> Result<(), Undecodable> {
        self.rest.extend_from_slice(&piece);
        loop {
            let here = self.rest.split_to(self.open.1.min(self.rest.len()));
            self.keep(&here);
            self.open.1 -= here.len();
            if self.open.1 > 0 {
                return Ok(());
            }
            let Some((field, prefix)) = wire::next(&self.rest)? else {
                return Ok(());
            };
            self.rest.advance(prefix);
            match field {
                // The last one counts, as for every field.
                Field::Bytes { field: 1, .. } => self.first.clear(),
                Field::Bytes { field: 2, .. } => self.second.clear(),
                Field::Number { field: 3, value } => self.number = value,
                other if other.number() <= 3 => return Err(misplaced(other.number())),
                _ => {}
            }
            self.open = (field.number(), field.length());
        }
    }

    fn finish(self) -> Result<Self::Output, Undecodable> {
        if self.rest.is_empty() && self.open.1 == 0 {
            Ok((self.first, self.second, self.number as i32))
        } else {
            Err(cut())
        }
    }
}

fn cut() -> Undecodable {
    Undecodable("the message ends within a field".into())
}

fn misplaced(field: u32) -> Undecodable {
    Undecodable(format!("field {field} has another type"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A list whose items have more fields than are read, and which has fields of its own.
    #[derive(Clone, PartialEq, Message)]
    struct Sent {
        #[prost(message, repeated, tag = "1")]
        items: Vec<SentItem>,
        #[prost(string, tag = "2")]
        text: String,
        #[prost(uint64, tag = "3")]
        number: u64,
        #[prost(fixed64, tag = "4")]
        eight: u64,
        #[prost(fixed32, tag = "2000")]
        four: u32,
    }

    #[derive(Clone, PartialEq, Message)]
    struct SentItem {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(bytes = "vec", tag = "2")]
        more: Vec<u8>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Item {
        #[prost(string, tag = "1")]
        name: String,
    }

    fn read(pieces: &[&[u8]]) -> Result<Vec<String>, Undecodable> {
        let mut each = Each::new(Vec::new(), |all: &mut Vec<String>, item: Item| {
            all.push(item.name);
        });
        for piece in pieces {
            each.push(Bytes::copy_from_slice(piece))?;
        }
        each.finish()
    }

    fn sent() -> impl Strategy<Value = Sent> {
        let item = (".{0,5}", prop::collection::vec(any::<u8>(), 0..200));
        let item = item.prop_map(|(name, more)| SentItem { name, more });
        let items = prop::collection::vec(item, 0..5);
        (items, ".{0,9}", any::<u64>(), any::<u64>(), any::<u32>()).prop_map(
            |(items, text, number, eight, four)| Sent {
                items,
                text,
                number,
                eight,
                four,
            },
        )
    }

    proptest! {
        #[test]
        fn items_are_the_same_however_the_list_is_cut(sent in sent(), step in 1..40_usize) {
            let bytes = sent.encode_to_vec();
            let names: Vec<String> = sent.items.into_iter().map(|item| item.name).collect();
            let pieces: Vec<&[u8]> = bytes.chunks(step).collect();
            prop_assert_eq!(read(&pieces), Ok(names));
        }

        #[test]
        fn what_the_usual_decoder_refuses_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), step in 1..9_usize) {
            #[derive(Clone, PartialEq, Message)]
            struct List {
                #[prost(message, repeated, tag = "1")]
                items: Vec<Item>,
            }
            let whole = List::decode(bytes.as_slice());
            let pieces: Vec<&[u8]> = bytes.chunks(step).collect();
            match read(&pieces) {
                Ok(names) => {
                    let expected = whole.unwrap().items.into_iter().map(|item| item.name);
                    prop_assert_eq!(names, expected.collect::<Vec<_>>());
                }
                // Groups, which the interface does not have, are refused only here.
                Err(Undecodable(text)) => prop_assert!(whole.is_err() || text.contains("wire type 3"), "{}", text),
            }
        }
    }

    #[test]
    fn a_list_that_ends_early_is_refused() {
        let sent = Sent {
            items: vec![SentItem {
                name: "a".into(),
                more: vec![0; 9],
            }],
            text: "b".into(),
            ..Sent::default()
        };
        let bytes = sent.encode_to_vec();
        assert_eq!(read(&[&bytes]), Ok(vec!["a".to_owned()]));
        // At the end of the item the list could be over.
        let item = 2 + bytes[1] as usize;
        for end in (1..bytes.len()).filter(|end| *end != item) {
            let error = read(&[&bytes[..end]]).unwrap_err();
            assert!(error.0.contains("ends within"), "{end}: {error:?}");
        }
    }

    #[derive(Clone, PartialEq, Message)]
    struct Ended {
        #[prost(bytes = "vec", tag = "1")]
        stdout: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        stderr: Vec<u8>,
        #[prost(int32, tag = "3")]
        exit_code: i32,
    }

    fn beginnings(pieces: &[&[u8]], most: usize) -> Result<(Vec<u8>, Vec<u8>, i32), Undecodable> {
        let mut sink = Beginnings::new(most);
        for piece in pieces {
            sink.push(Bytes::copy_from_slice(piece))?;
        }
        sink.finish()
    }

    proptest! {
        #[test]
        fn beginnings_are_those_of_the_whole(
            stdout in prop::collection::vec(any::<u8>(), 0..300),
            stderr in prop::collection::vec(any::<u8>(), 0..300),
            exit_code in any::<i32>(),
            most in 0..400_usize,
            step in 1..50_usize,
        ) {
            let ended = Ended { stdout, stderr, exit_code };
            let bytes = ended.encode_to_vec();
            let pieces: Vec<&[u8]> = bytes.chunks(step).collect();
            let beginning = |bytes: &[u8]| bytes[..most.min(bytes.len())].to_vec();
            let expected = (beginning(&ended.stdout), beginning(&ended.stderr), exit_code);
            prop_assert_eq!(beginnings(&pieces, most), Ok(expected));
        }

        #[test]
        fn beginnings_of_any_bytes_are_what_the_usual_decoder_reads(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            step in 1..9_usize,
        ) {
            let whole = Ended::decode(bytes.as_slice());
            let pieces: Vec<&[u8]> = bytes.chunks(step).collect();
            match beginnings(&pieces, 100) {
                Ok(found) => {
                    let whole = whole.unwrap();
                    prop_assert_eq!(found, (whole.stdout, whole.stderr, whole.exit_code));
                }
                Err(Undecodable(text)) => prop_assert!(whole.is_err() || text.contains("wire type 3"), "{}", text),
            }
        }
    }
}
