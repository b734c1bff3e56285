//! Text that is not JSON, in Go's words.

/// Whether text is JSON that ends too early.
fn is_cut(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

/// Go's message for text that is not JSON, for the commonest mistakes.
pub(crate) fn go_error(text: &[u8]) -> String {
    let after = |at: usize| {
        text.get(at..)
            .unwrap_or_default()
            .iter()
            .find(|b| !b.is_ascii_whitespace())
    };
    let start = text
        .iter()
        .position(|b| !b.is_ascii_whitespace())
        .unwrap_or_default();
    let (found, place) = match (text.get(start), after(start + 1)) {
        _ if is_cut(text) => return "unexpected end of JSON input".into(),
        (None, _) => return "unexpected end of JSON input".into(),
        (Some(b'{'), Some(next)) if *next != b'"' => (*next, "looking for beginning of object key string"),
        (Some(first), _) => (*first, "looking for beginning of value"),
    };
    let shown = match found {
        b' '..=b'~' => char::from(found).to_string(),
        other => format!("\\u{other:04x}"),
    };
    format!("invalid character '{shown}' {place}")
}
