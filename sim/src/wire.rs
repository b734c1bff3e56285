//! Requests and responses, free of any transport.

use std::cell::RefCell;

use serde_json::Value;

/// Texts longer than this are rare: what one of them was written into is not kept.
const LONG: usize = 256 << 10;

/// An HTTP method that the API knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read, list or watch.
    Get,
    /// Create.
    Post,
    /// Replace.
    Put,
    /// Change in part.
    Patch,
    /// Remove.
    Delete,
}

impl Method {
    /// From its name on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "GET" => Self::Get,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            _ => return None,
        })
    }
}

/// JSON as text, the same as `to_string` writes, in a third of the time: texts go over as wholes, and what is written
/// into is kept, so that it grows once and not for every text.
pub(crate) fn text(value: &Value) -> Vec<u8> {
    thread_local! {
        static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    WRITTEN.with_borrow_mut(|written| {
        written.clear();
        append(value, &[], written);
        if written.capacity() > LONG {
            return std::mem::take(written);
        }
        written.clone()
    })
}

/// What JSON text says. It is checked once that all of it is UTF-8, not text by text.
pub(crate) fn parse(text: &[u8]) -> serde_json::Result<Value> {
    match std::str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(text),
    }
}

/// Appends a value, of an object all members but some.
pub(crate) fn append(value: &Value, but: &[&str], out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => {
            // memory does not refuse to be written
            let _ = serde_json::to_writer(out, number);
        }
        Value::String(text) => quote(text, b"", out),
        Value::Array(items) => {
            let mut before = b'[';
            for item in items {
                out.push(before);
                append(item, &[], out);
                before = b',';
            }
            out.extend_from_slice(if items.is_empty() { b"[]" } else { b"]" });
        }
        Value::Object(members) => {
            let mut before = b'{';
            for (name, member) in members.iter().filter(|(name, _)| !but.contains(&name.as_str())) {
                out.push(before);
                quote(name, b":", out);
                append(member, &[], out);
                before = b',';
            }
            out.extend_from_slice(if before == b'{' { b"{}" } else { b"}" });
        }
    }
}

/// Appends a text in quotes, and what follows it.
fn quote(text: &str, then: &[u8], out: &mut Vec<u8>) {
    if is_plain(text.as_bytes()) {
        out.reserve(text.len() + then.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        let _ = serde_json::to_writer(&mut *out, text);
    }
    out.extend_from_slice(then);
}

/// Whether nothing of a text needs escaping: it is looked at in words of eight bytes.
fn is_plain(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // has its high bit where a byte is less than `limit`, which is at most 128
    let less = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let (words, rest) = text.as_chunks::<8>();
    let is_plain_word = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        let quotes = less(word ^ (ONES * u64::from(b'"')), 1);
        let escapes = less(word ^ (ONES * u64::from(b'\\')), 1);
        less(word, 0x20) | quotes | escapes == 0
    };
    words.iter().all(is_plain_word) && rest.iter().all(|byte| !matches!(byte, 0..0x20 | b'"' | b'\\'))
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to do.
    pub method: Method,
    /// Where, without the query and still escaped: `/api/v1/namespaces/default/pods`.
    pub path: String,
    /// What follows the `?`, still escaped.
    pub query: String,
    /// The `Content-Type` header, or empty.
    pub content_type: String,
    /// The `Accept` header, or empty.
    pub accept: String,
    /// Who asks; webhooks are told.
    pub user: String,
    /// The body, or empty.
    pub body: Vec<u8>,
}

impl Request {
    /// The content type without its parameters.
    pub(crate) fn media_type(&self) -> &str {
        self.content_type.split(';').next().unwrap_or_default().trim()
    }

    /// A request by `kubernetes-admin` with an optional JSON body. `target` is a path, with or without a query.
    pub fn new(method: Method, target: &str, body: Option<&Value>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            content_type: "application/json".into(),
            accept: "application/json".into(),
            user: "kubernetes-admin".into(),
            body: body.map(text).unwrap_or_default(),
        }
    }

    /// With another `Content-Type`, as patches need.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.content_type);
        self
    }

    /// With another `Accept`.
    #[must_use]
    pub fn accept(mut self, accept: &str) -> Self {
        accept.clone_into(&mut self.accept);
        self
    }
}

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub code: u16,
    /// The `Content-Type` header.
    pub content_type: &'static str,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// A JSON document.
    pub fn json(code: u16, body: &Value) -> Self {
        Self::bytes(code, text(body))
    }

    /// A JSON document that is text already.
    pub fn bytes(code: u16, body: Vec<u8>) -> Self {
        Self {
            code,
            content_type: "application/json",
            warnings: Vec::new(),
            body,
        }
    }

    /// Plain text.
    pub fn text(code: u16, body: &str) -> Self {
        Self {
            code,
            content_type: "text/plain; charset=utf-8",
            warnings: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    /// The body as JSON; `null` if it is not.
    pub fn value(&self) -> Value {
        parse(&self.body).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::text;

    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            "[ -~]{0,40}[\"\\\\\u{1}\u{1f}\u{7f}é]?[a-z]{0,9}".prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[ -~]{0,12}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_is_written_as_everybody_writes_it(value in values()) {
            prop_assert_eq!(String::from_utf8(text(&value)).unwrap_or_default(), value.to_string());
        }
    }

    #[test]
    fn every_byte_that_needs_it_is_escaped_wherever_it_stands() {
        for code in 0..0x100 {
            for before in 0..17 {
                let character = char::from_u32(code).unwrap_or_default();
                let value = json!(format!("{}{character}abcdefgh", "x".repeat(before)));
                assert_eq!(
                    String::from_utf8(text(&value)).unwrap_or_default(),
                    value.to_string()
                );
            }
        }
    }
}
