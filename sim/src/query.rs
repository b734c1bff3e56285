//! Query parameters.

use std::collections::BTreeMap;
use std::num::{IntErrorKind, ParseIntError};

use crate::status::Failure;

/// Decoded parameters; of repeated ones, all values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            out.entry(decode(name)).or_default().push(decode(value));
        }
        Self(out)
    }

    /// The first value, or empty.
    pub(crate) fn text(&self, name: &str) -> &str {
        let first = self.0.get(name).and_then(|values| values.first());
        first.map_or("", String::as_str)
    }

    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// As Go reads booleans.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), "1" | "t" | "T" | "true" | "True" | "TRUE")
    }

    /// A whole number; absent and empty are none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Failure> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Failure::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }
}

/// Undoes percent encoding; `+` is a blank.
pub(crate) fn decode(text: &str) -> String {
    if !text.contains(['+', '%']) {
        return text.to_owned();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
                if let (Some(high), Some(low)) = (digit(), digit()) {
                    out.push((high * 16 + low) as u8);
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
