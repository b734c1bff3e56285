//! Bytes that cannot be read.

/// Bytes that are no object of the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// There is nothing.
    Empty,
    /// The body does not start as it must.
    NoEnvelope,
    /// The bytes end within a field.
    Cut,
    /// Not well-formed protobuf; in the words of Go's decoder.
    Malformed(&'static str),
    /// A field's value has the wrong wire type.
    WrongType {
        /// The field's JSON name.
        field: &'static str,
        /// The wire type it has.
        found: u8,
    },
    /// A value that the field's type does not have.
    Value {
        /// The innermost struct's type.
        within: &'static str,
        /// The field's JSON name.
        field: &'static str,
        /// Why.
        why: &'static str,
    },
    /// Messages within messages beyond any type's depth.
    TooDeep,
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("empty data"),
            Self::NoEnvelope => f.write_str(
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
            ),
            Self::Cut => f.write_str("unexpected EOF"),
            Self::Malformed(why) => write!(f, "proto: {why}"),
            Self::WrongType { field, found } => {
                write!(f, "proto: wrong wireType = {found} for field {}", go_field(field))
            }
            Self::Value { within, field, why } => write!(f, "proto: field {within}.{field}: {why}"),
            Self::TooDeep => f.write_str("proto: messages are nested too deeply"),
        }
    }
}

/// A field's name in Go, which is that in JSON but for the first letter.
fn go_field(name: &str) -> String {
    if name == "metadata" {
        return "ObjectMeta".into();
    }
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

impl std::error::Error for WireError {}
