//! Decodes list pages and watch lines straight into a (narrow) type.
//!
//! The object of a watch line is decoded after its type is known, because bookmarks and errors are not objects of the
//! resource. Servers write the type first, so a line is read once. In the other order the object is kept as text until
//! the type is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{Failure, Input, StreamedLine, Version, WatchInput};

/// A list page or watch line that does not follow the API. Report it as [`Failure::Malformed`].
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or not of the expected shape.
    #[error("undecodable object: {0}")]
    Json(#[from] serde_json::Error),
    /// A list or bookmark without a comparable version: this resource cannot be cached here.
    #[error("resource version {0:?} is not a decimal number")]
    Version(String),
    /// A watch event of an unknown type.
    #[error("unknown watch event type {0:?}")]
    Type(String),
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct List<T> {
    metadata: ListMeta,
    #[serde(default = "Vec::new", deserialize_with = "null_is_empty")]
    items: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    r#continue: Option<Box<str>>,
}

/// Members of a watch line.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Type,
    Object,
    #[serde(other)]
    Other,
}

/// The type of a watch event.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "UPPERCASE")]
enum Type {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    Unknown(String),
}

/// A watch line as JSON.
enum Line<T> {
    Added(T),
    Modified(T),
    Deleted(T),
    Bookmark(Bookmark),
    Error(Status),
    Unknown(String),
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    annotations: Option<BookmarkAnnotations>,
}

#[derive(Deserialize)]
struct BookmarkAnnotations {
    #[serde(default, rename = "k8s.io/initial-events-end")]
    initial_events_end: String,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    reason: String,
}

/// Reads JSON faster than `serde_json::from_slice`: UTF-8 is validated once for the whole input, not for each string.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        // `from_slice` reports the position of the error, and accepts invalid UTF-8 in fields that it skips.
        Err(_) => serde_json::from_slice(bytes),
    }
}

/// Decodes the body of a list response into [`Input::Page`].
pub fn decode_page<T: DeserializeOwned>(body: &[u8]) -> Result<Input<T>, DecodeError> {
    let list: List<T> = from_json(body)?;
    let version = parse_version(list.metadata.resource_version)?;
    Ok(Input::Page {
        items: list.items,
        version,
        continue_token: list.metadata.r#continue,
    })
}

/// Decodes one line of a watch into [`Input::Watch`], or [`Input::Failed`] for an `ERROR` event.
pub fn decode_watch_line<T: DeserializeOwned>(line: &[u8]) -> Result<Input<T>, DecodeError> {
    Ok(match decode_streamed_line(line)? {
        StreamedLine::Event(event) => Input::Watch(event),
        StreamedLine::End(version) => Input::Watch(WatchInput::Bookmark(version)),
        StreamedLine::Failed(failure) => Input::Failed(failure),
    })
}

/// Decodes one line of a watch with initial events.
pub fn decode_streamed_line<T: DeserializeOwned>(line: &[u8]) -> Result<StreamedLine<T>, DecodeError> {
    let event = match from_json(line)? {
        Line::Added(object) => WatchInput::Added(object),
        Line::Modified(object) => WatchInput::Modified(object),
        Line::Deleted(object) => WatchInput::Deleted(object),
        Line::Bookmark(bookmark) => {
            let version = parse_version(bookmark.metadata.resource_version)?;
            let annotations = bookmark.metadata.annotations;
            if annotations.is_some_and(|annotations| annotations.initial_events_end == "true") {
                return Ok(StreamedLine::End(version));
            }
            WatchInput::Bookmark(version)
        }
        Line::Error(status) => {
            let failure = Failure::from_status(status.code, &status.reason, None);
            return Ok(StreamedLine::Failed(failure));
        }
        Line::Unknown(kind) => return Err(DecodeError::Type(kind)),
    };
    Ok(StreamedLine::Event(event))
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Line<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor(PhantomData))
    }
}

struct LineVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for LineVisitor<T> {
    type Value = Line<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut early, mut line) = (None, None, None);
        while let Some(member) = members.next_key()? {
            match (member, &kind) {
                (Member::Type, _) => kind = Some(members.next_value()?),
                (Member::Object, Some(kind)) => line = Some(members.next_value_seed(Object(kind, self.0))?),
                (Member::Object, None) => early = Some(members.next_value::<&RawValue>()?),
                (Member::Other, _) => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
        match (line, early) {
            (Some(line), _) => Ok(line),
            (None, Some(text)) => Object(&kind, self.0).deserialize(text).map_err(A::Error::custom),
            (None, None) => Err(A::Error::missing_field("object")),
        }
    }
}

/// The object of a line of a known type.
struct Object<'k, T>(&'k Type, PhantomData<T>);

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Object<'_, T> {
    type Value = Line<T>;

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<Line<T>, D::Error> {
        Ok(match self.0 {
            Type::Added => Line::Added(T::deserialize(object)?),
            Type::Modified => Line::Modified(T::deserialize(object)?),
            Type::Deleted => Line::Deleted(T::deserialize(object)?),
            Type::Bookmark => Line::Bookmark(Bookmark::deserialize(object)?),
            Type::Error => Line::Error(Status::deserialize(object)?),
            Type::Unknown(kind) => {
                IgnoredAny::deserialize(object)?;
                Line::Unknown(kind.clone())
            }
        })
    }
}

fn parse_version(text: String) -> Result<Version, DecodeError> {
    text.parse().map_err(|_| DecodeError::Version(text))
}

/// Go writes a nil slice as `null`.
fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Named {
        name: String,
    }

    #[test]
    fn a_page_with_null_items_is_empty() {
        let page =
            decode_page::<Named>(br#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":null}"#);
        let expected = Input::Page {
            items: Vec::new(),
            version: Version::new(7),
            continue_token: None,
        };
        assert_eq!(page.unwrap(), expected);
    }

    #[test]
    fn a_page_carries_its_continue_token() {
        let body = br#"{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},"items":[{"name":"a"}]}"#;
        let items = vec![Named { name: "a".into() }];
        let expected = Input::Page {
            items,
            version: Version::new(7),
            continue_token: Some("t".into()),
        };
        assert_eq!(decode_page(body).unwrap(), expected);
    }

    #[test]
    fn a_list_without_a_comparable_version_is_refused() {
        let page = decode_page::<Named>(br#"{"metadata":{"resourceVersion":"abc"},"items":[]}"#);
        assert!(matches!(page, Err(DecodeError::Version(text)) if text == "abc"));
    }

    #[test]
    fn bookmarks_and_errors_are_read_without_decoding_an_object() {
        let bookmark = br#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}"#;
        let decoded = decode_watch_line::<Named>(bookmark).unwrap();
        assert_eq!(decoded, Input::Watch(WatchInput::Bookmark(Version::new(12))));
        let expired = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert_eq!(
            decode_watch_line::<Named>(expired).unwrap(),
            Input::Failed(Failure::Gone)
        );
    }

    #[test]
    fn the_members_of_a_line_may_come_in_any_order() {
        let expected = Input::Watch(WatchInput::Added(Named { name: "a".into() }));
        let lines = [
            r#"{"type":"ADDED","object":{"name":"a"}}"#,
            r#"{"object":{"name":"a"},"more":[{}],"type":"ADDED"}"#,
            r#" { "more" : null , "type" : "\u0041DDED" , "object" : { "more": 1, "name" : "a" } } "#,
        ];
        for line in lines {
            assert_eq!(decode_watch_line(line.as_bytes()).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn lines_that_are_cut_or_lack_a_member_are_refused() {
        let lines = [
            "",
            "[]",
            r#"{"type":"ADDED"}"#,
            r#"{"object":{"name":"a"}}"#,
            r#"{"type":"ADDED","object":{"name":"a"}"#,
            r#"{"type":"ADDED","object":{"name":"a"}} x"#,
            r#"{"type":"ADDED","object":{}}"#,
            r#"{"type":7,"object":{"name":"a"}}"#,
            r#"{"object":{},"type":"MODIFIED"}"#,
        ];
        for line in lines {
            let decoded = decode_watch_line::<Named>(line.as_bytes());
            assert!(
                matches!(decoded, Err(DecodeError::Json(_))),
                "{line}: {decoded:?}"
            );
        }
    }

    #[test]
    fn an_unknown_event_type_is_an_error() {
        let deleted = decode_watch_line(br#"{"type":"DELETED","object":{"name":"a","extra":1}}"#).unwrap();
        assert_eq!(
            deleted,
            Input::Watch(WatchInput::Deleted(Named { name: "a".into() }))
        );
        let unknown = decode_watch_line::<Named>(br#"{"type":"RENAMED","object":{}}"#);
        assert!(matches!(unknown, Err(DecodeError::Type(kind)) if kind == "RENAMED"));
    }
}
