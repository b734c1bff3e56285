//! How much memory JSON takes as a tree, found out before it is made.
//!
//! A tree may take a hundred times its text: `{"":0}` is seven bytes, and the smallest object has room for eleven
//! members. The estimate is an upper bound of what reading takes with the allocator of the system, and costs one
//! pass over the text.

/// A member of an array or an object beyond the first. Arrays are moved to twice their room as they grow; objects
/// keep a half of theirs free.
const MEMBER: usize = 160;
/// A key or a text beyond its bytes.
const TEXT: usize = 32;
/// An array that is not empty.
const ARRAY: usize = 128;
/// An object that is not empty.
const OBJECT: usize = 672;

/// Upper bound of the bytes that the tree of this text takes, the text included.
pub fn of(json: &[u8]) -> usize {
    heaviest(json, 0)
}

/// The weight of the heaviest array or object that is nested in `depth` others; that of garbage at the end counts, too.
pub fn heaviest(json: &[u8], depth: usize) -> usize {
    let (mut open, mut weight, mut most) = (0_usize, 0_usize, 0_usize);
    let mut rest = json.iter();
    while let Some(byte) = rest.next() {
        weight += 1;
        match byte {
            b'"' => {
                let text = text(rest.as_slice());
                weight += text + TEXT;
                rest = rest.as_slice().get(text..).unwrap_or_default().iter();
            }
            b',' => weight += MEMBER,
            b'{' | b'[' => {
                if open == depth {
                    weight = 1;
                }
                open += 1;
                weight += match (byte, rest.as_slice().first()) {
                    (b'{', Some(b'}')) | (b'[', Some(b']')) => 0,
                    (b'{', _) => OBJECT,
                    _ => ARRAY,
                };
            }
            b'}' | b']' => {
                open = open.saturating_sub(1);
                if open == depth {
                    most = most.max(weight);
                }
            }
            _ => {}
        }
    }
    if open > depth || depth == 0 {
        most.max(weight)
    } else {
        most
    }
}

/// Bytes of a text to its end, the closing mark included.
fn text(json: &[u8]) -> usize {
    let mut escaped = false;
    let end = json.iter().position(|byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        byte => *byte == b'"',
    });
    end.map_or(json.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_texts_does_not_count_as_members() {
        let plain = of(br#"{"a":"xxxx"}"#);
        assert_eq!(of(br#"{"a":"{,[,"}"#), plain);
        assert_eq!(of(br#"{"a":"\",\\"}"#), plain + 1);
        assert_eq!(of(br#"{"a":"\\","b":"x"}"#), of(br#"{"a":"xx","b":"x"}"#));
    }

    #[test]
    fn the_densest_texts_weigh_a_hundred_times_their_bytes() {
        for (text, least) in [
            (r#"{"":0}"#, 100),
            ("[0]", 60),
            ("0", 80),
            ("\"\"", 60),
            ("{}", 50),
        ] {
            let list = format!("[{}]", vec![text; 1000].join(","));
            let times = of(list.as_bytes()) / list.len();
            assert!((least..least + 40).contains(&times), "{text}: {times}");
        }
    }

    #[test]
    fn the_heaviest_of_several_objects_is_found_at_its_depth() {
        let review = br#"{"request":{"objects":[{"a":1},{"a":[1,2,3]},{}],"uid":"u"}}"#;
        assert_eq!(heaviest(review, 3), of(br#"{"a":[1,2,3]}"#));
        assert_eq!(heaviest(b"{\"a\":[1]}", 3), 0);
        assert_eq!(heaviest(b"[[[[1,2", 3), of(b"[1,2"), "garbage counts, too");
        assert_eq!(of(b"]]]],"), 5 + MEMBER);
    }
}
