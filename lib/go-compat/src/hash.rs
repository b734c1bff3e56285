//! The hash functions Kubernetes names and compares objects by.

use std::fmt::Write as _;

const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// Characters of generated names: no vowels and no look-alikes.
pub const SAFE_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1, 32 bits: multiply, then mix the byte in.
pub fn fnv1_32(parts: &[&[u8]]) -> u32 {
    parts
        .iter()
        .copied()
        .flatten()
        .fold(OFFSET, |sum, byte| sum.wrapping_mul(PRIME) ^ u32::from(*byte))
}

/// FNV-1a, 32 bits: mix the byte in, then multiply.
pub fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(OFFSET, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(PRIME))
}

/// Hash of some JSON text as kubelet and others take it: over the text of a dumped Go byte slice,
/// `([]uint8)[123 125]`, not over the bytes themselves.
pub fn dump_hash(text: &str) -> u64 {
    let mut dump = String::with_capacity(12 + 4 * text.len());
    dump.push_str("([]uint8)[");
    for (index, byte) in text.bytes().enumerate() {
        if index > 0 {
            dump.push(' ');
        }
        // writing to a String cannot fail
        let _ = write!(dump, "{byte}");
    }
    dump.push(']');
    u64::from(fnv1a_32(dump.as_bytes()))
}

/// Spells text in [`SAFE_ALPHABET`], character by character.
pub fn safe_encode(text: &str) -> String {
    text.chars()
        .filter_map(|c| SAFE_ALPHABET.get(c as usize % SAFE_ALPHABET.len()))
        .map(|byte| char::from(*byte))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{dump_hash, fnv1_32, fnv1a_32};

    #[test]
    fn fnv_test_vectors() {
        assert_eq!(fnv1_32(&[]), 0x811c_9dc5);
        assert_eq!(fnv1_32(&[b"foo", b"bar"]), 0x31f0_b262);
        assert_eq!(fnv1a_32(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn claim_template_hash() {
        let claims = r#"[{"metadata":{"name":"data","creationTimestamp":null},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}},"status":{}}]"#;
        assert_eq!(dump_hash(claims), 3_636_919_212);
    }
}
