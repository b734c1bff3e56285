use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Envelope, WireError};
use crate::table::{Table, TypeId};
use crate::typed;

/// A type, its body, its JSON: what Kubernetes publishes to prove its encodings. See gen/README.md.
fn golden() -> Vec<(TypeId, Vec<u8>, Value)> {
    let lines = include_str!("golden.txt").lines();
    lines
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let of = Table::builtin().find(words.next().unwrap()).unwrap();
            let body = STANDARD.decode(words.next().unwrap()).unwrap();
            (of, body, serde_json::from_str(words.next().unwrap()).unwrap())
        })
        .collect()
}

fn decode(of: TypeId, body: &[u8]) -> Result<Value, WireError> {
    Envelope::open(body)?.decode(Table::builtin(), of)
}

#[test]
fn every_published_object_reads_as_its_json() {
    let table = Table::builtin();
    for (of, body, expected) in golden() {
        let name = table.get(of).name;
        let found = decode(of, &body).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = typed::decode(table, of, found).unwrap();
        assert!(found.unknown.is_empty(), "{name}: {:?}", found.unknown);
        let expected = typed::decode(table, of, expected).unwrap();
        assert_eq!(found.value, expected.value, "{name}");
    }
}

#[test]
fn only_the_prefix_makes_an_envelope() {
    assert_eq!(Envelope::open(b""), Err(WireError::Empty));
    assert_eq!(Envelope::open(b"{}"), Err(WireError::NoEnvelope));
    assert_eq!(Envelope::open(b"k8s\0"), Ok(Envelope::default()));
}

fn pod() -> TypeId {
    Table::builtin().find("core/v1.Pod").unwrap()
}

/// A body whose object has these bytes.
fn body(object: &[u8]) -> Vec<u8> {
    let mut out = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12".to_vec();
    out.push(u8::try_from(object.len()).unwrap());
    out.extend(object);
    out
}

#[test]
fn unknown_fields_are_skipped_whatever_their_wire_type() {
    let object = b"\xa0\x06\x07\xa1\x06\0\0\0\0\0\0\0\0\xa2\x06\x01x\xa3\x06\x08\x01\xa4\x06\xa5\x06\0\0\0\0\x0a\x03\x0a\x01a";
    let expected = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    assert_eq!(decode(pod(), &body(object)), Ok(expected));
}

#[test]
fn a_message_that_comes_in_parts_is_merged() {
    let object = b"\x0a\x03\x0a\x01a\x0a\x03\x1a\x01b";
    let found = decode(pod(), &body(object)).unwrap();
    assert_eq!(found["metadata"], json!({"name": "a", "namespace": "b"}));
}

#[test]
fn what_does_not_decode_is_refused() {
    let refused = |object: &[u8]| decode(pod(), &body(object)).unwrap_err().to_string();
    assert_eq!(refused(b"\x0a\x05\x0a"), "unexpected EOF");
    assert_eq!(
        refused(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        "proto: integer overflow"
    );
    assert_eq!(
        refused(b"\x08\x01"),
        "proto: wrong wireType = 0 for field ObjectMeta"
    );
    assert_eq!(refused(b"\x0c"), "proto: wiretype end group for non-group");
    assert_eq!(refused(b"\x0f"), "proto: illegal wireType");
    assert_eq!(refused(b"\x00\x00"), "proto: illegal tag");
}

#[test]
fn groups_do_not_recurse() {
    let deep = [0xa3_u8, 0x06].repeat(1 << 20);
    let mut bytes = b"k8s\0\x12".to_vec();
    let mut length = deep.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(deep);
    assert_eq!(decode(pod(), &bytes), Err(WireError::Cut));
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for (of, _, _) in golden() {
            let _result = Envelope { object: &bytes, ..Envelope::default() }.decode(Table::builtin(), of);
        }
    }

    #[test]
    fn a_damaged_object_never_panics_and_what_is_read_has_its_type(
        which in 0..26_usize, at in any::<prop::sample::Index>(), byte: u8, cut: prop::sample::Index,
    ) {
        let (of, mut bytes, _) = golden().swap_remove(which);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        for body in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            if let Ok(value) = decode(of, body) {
                prop_assert!(typed::decode(Table::builtin(), of, value).is_ok());
            }
        }
    }
}
