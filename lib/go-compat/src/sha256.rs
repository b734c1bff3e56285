//! SHA-256 (FIPS 180-4), for hashes that are part of stored state. Not for secrets: it takes no care of timing.

use std::fmt::Write as _;

const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// The digest in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((bytes.len() as u64).wrapping_mul(8).to_be_bytes());
    let state = padded.chunks_exact(64).fold(START, block);
    state.iter().fold(String::with_capacity(64), |mut text, word| {
        // writing to a String cannot fail
        let _ = write!(text, "{word:08x}");
        text
    })
}

fn block(state: [u32; 8], chunk: &[u8]) -> [u32; 8] {
    let mut working = state;
    for (word, constant) in schedule(chunk).zip(ROUNDS) {
        working = round(working, word.wrapping_add(constant));
    }
    let mut sums = state;
    for (sum, word) in sums.iter_mut().zip(working) {
        *sum = sum.wrapping_add(word);
    }
    sums
}

/// The 64 words of a chunk: its own sixteen, then each out of the sixteen before it.
fn schedule(chunk: &[u8]) -> impl Iterator<Item = u32> {
    let mut window = [0_u32; 16];
    for (word, bytes) in window.iter_mut().zip(chunk.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    std::iter::repeat_with(move || {
        let [first, second, .., fourteenth, _] = window;
        let tenth = window.get(9).copied().unwrap_or_default();
        let small = second.rotate_right(7) ^ second.rotate_right(18) ^ (second >> 3);
        let large = fourteenth.rotate_right(17) ^ fourteenth.rotate_right(19) ^ (fourteenth >> 10);
        let next = first.wrapping_add(small).wrapping_add(tenth).wrapping_add(large);
        window.rotate_left(1);
        let [.., last] = &mut window;
        *last = next;
        first
    })
}

#[allow(clippy::many_single_char_names)] // the names of the standard
fn round([a, b, c, d, e, f, g, h]: [u32; 8], input: u32) -> [u32; 8] {
    let large_e = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
    let choice = (e & f) ^ (!e & g);
    let first = h.wrapping_add(large_e).wrapping_add(choice).wrapping_add(input);
    let large_a = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
    let majority = (a & b) ^ (a & c) ^ (b & c);
    let second = large_a.wrapping_add(majority);
    [
        first.wrapping_add(second),
        a,
        b,
        c,
        d.wrapping_add(first),
        e,
        f,
        g,
    ]
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn published_vectors() {
        for (text, digest) in [
            (
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(hex(text.as_bytes()), digest, "{text}");
        }
        let many = "a".repeat(1_000_000);
        assert_eq!(
            hex(many.as_bytes()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }
}
