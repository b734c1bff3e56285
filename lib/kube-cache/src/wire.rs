//! Decodes list pages and watch lines straight into a (narrow) type.
//!
//! The object of a watch line is decoded after its type is known, because bookmarks and errors are not objects of the
//! resource. Servers write the type first, so a line is read once. In the other order the object is kept as text until
//! the type is read.
//!
//! An object that is nested deeper than a decoder goes is skipped, and reported: it must not keep all others from being
//! read. Its earlier state, if there is one, stays.

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

/// An object that is nested too deep to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TooDeep {
    /// Its namespace; empty if it is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    resource_version: String,
}

/// What is read of an object that is too deep.
#[derive(Deserialize)]
struct Outline {
    metadata: TooDeep,
}

/// What is read of a watch line with such an object.
#[derive(Deserialize)]
struct OutlinedLine {
    r#type: String,
    object: Outline,
}

/// Did the decoder give up because of the depth? It says so in words only.
fn is_too_deep(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit exceeded")
}

/// Decodes the body of a list response into [`Input::Page`]. Each object that is skipped is reported to `skipped`.
pub fn decode_page<T: DeserializeOwned>(
    body: &[u8],
    skipped: &mut dyn FnMut(TooDeep),
) -> Result<Input<T>, DecodeError> {
    let list: List<T> = match from_json(body) {
        Err(error) if is_too_deep(&error) => list_without(body, skipped)?,
        list => list?,
    };
    let version = parse_version(list.metadata.resource_version)?;
    Ok(Input::Page {
        items: list.items,
        version,
        continue_token: list.metadata.r#continue,
    })
}

/// A list without the objects that are too deep. Texts of objects are found without a limit to the depth.
fn list_without<T: DeserializeOwned>(
    body: &[u8],
    skipped: &mut dyn FnMut(TooDeep),
) -> Result<List<T>, DecodeError> {
    let texts: List<Box<RawValue>> = from_json(body)?;
    let mut items = Vec::with_capacity(texts.items.len());
    for text in texts.items {
        match serde_json::from_str(text.get()) {
            Ok(item) => items.push(item),
            Err(error) if is_too_deep(&error) => {
                skipped(serde_json::from_str::<Outline>(text.get())?.metadata);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(List {
        metadata: texts.metadata,
        items,
    })
}

/// Decodes one line of a watch into [`Input::Watch`], or [`Input::Failed`] for an `ERROR` event. An object that is
/// skipped is reported to `skipped`.
pub fn decode_watch_line<T: DeserializeOwned>(
    line: &[u8],
    skipped: &mut dyn FnMut(TooDeep),
) -> Result<Input<T>, DecodeError> {
    decode_streamed_line(line, skipped).map(Input::from)
}

/// The version of a line whose object is too deep. An end must not be missed: such a line is an error.
fn skip(line: &[u8], skipped: &mut dyn FnMut(TooDeep)) -> Option<Result<Version, DecodeError>> {
    let line: OutlinedLine = from_json(line).ok()?;
    let object = line.object.metadata;
    let version = parse_version(object.resource_version.clone());
    (line.r#type != "DELETED").then(|| {
        skipped(object);
        version
    })
}

/// Decodes one line of a watch with initial events. An object that is skipped is reported to `skipped`; its line
/// counts as a bookmark.
pub fn decode_streamed_line<T: DeserializeOwned>(
    line: &[u8],
    skipped: &mut dyn FnMut(TooDeep),
) -> Result<StreamedLine<T>, DecodeError> {
    let decoded = match from_json(line) {
        Err(error) if is_too_deep(&error) => match skip(line, skipped) {
            Some(version) => return Ok(StreamedLine::Event(WatchInput::Bookmark(version?))),
            None => return Err(error.into()),
        },
        decoded => decoded?,
    };
    let event = match decoded {
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
    use serde_json::Value;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Named {
        name: String,
    }

    fn page<T: DeserializeOwned>(body: &[u8]) -> Result<Input<T>, DecodeError> {
        decode_page(body, &mut |object| panic!("{object:?} is skipped"))
    }

    fn line<T: DeserializeOwned>(text: &[u8]) -> Result<Input<T>, DecodeError> {
        decode_watch_line(text, &mut |object| panic!("{object:?} is skipped"))
    }

    /// What a type reads that leaves the rest out.
    #[derive(Debug, Deserialize)]
    struct Narrow {
        metadata: TooDeep,
    }

    /// An object with a member of this depth.
    fn object(name: &str, depth: usize) -> String {
        let nested = format!(
            "{}{}",
            r#"{"a":"#.repeat(depth),
            "1".to_owned() + &"}".repeat(depth)
        );
        format!(
            r#"{{"metadata":{{"namespace":"shop","name":"{name}","resourceVersion":"5"}},"spec":{nested}}}"#
        )
    }

    #[test]
    fn an_object_that_is_nested_too_deep_is_skipped_and_reported_and_keeps_no_other_one_back() {
        let body = |objects: &[String]| {
            format!(
                r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#,
                objects.join(",")
            )
        };
        for (depth, is_skipped) in [(100, false), (200, true), (100_000, true)] {
            let mut skipped = Vec::new();
            let objects = [object("a", 1), object("deep", depth), object("b", 1)];
            let page =
                decode_page::<Value>(body(&objects).as_bytes(), &mut |one| skipped.push(one.name)).unwrap();
            let Input::Page { items, version, .. } = page else {
                panic!("{page:?}")
            };
            assert_eq!(
                (items.len(), version),
                (3 - usize::from(is_skipped), Version::new(7))
            );
            assert_eq!(skipped == ["deep"], is_skipped, "{depth}: {skipped:?}");
            for (kind, is_error) in [("ADDED", false), ("MODIFIED", false), ("DELETED", true)] {
                let text = format!(r#"{{"type":"{kind}","object":{}}}"#, object("deep", depth));
                let mut skipped = Vec::new();
                let decoded = decode_watch_line::<Value>(text.as_bytes(), &mut |one| skipped.push(one));
                if !is_skipped {
                    assert!(decoded.is_ok() && skipped.is_empty(), "{kind} {depth}");
                } else if is_error {
                    assert!(
                        decoded.is_err() && skipped.is_empty(),
                        "{kind}: an end must not be missed"
                    );
                } else {
                    assert_eq!(
                        decoded.unwrap(),
                        Input::Watch(WatchInput::Bookmark(Version::new(5)))
                    );
                    assert_eq!((&*skipped[0].namespace, &*skipped[0].name), ("shop", "deep"));
                }
            }
            // a type that leaves the deep part out reads it
            let page =
                decode_page::<Narrow>(body(&objects).as_bytes(), &mut |one| panic!("{one:?} is skipped"));
            let Input::Page { items, .. } = page.unwrap() else {
                panic!()
            };
            assert_eq!(items[1].metadata.name, "deep");
        }
        let other = body(&[object("a", 200), "7".to_owned()]);
        assert!(
            decode_page::<Named>(other.as_bytes(), &mut |_| {}).is_err(),
            "another error is none of the depth"
        );
    }

    #[test]
    fn a_page_with_null_items_is_empty() {
        let page = page::<Named>(br#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":null}"#);
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
        assert_eq!(page(body).unwrap(), expected);
    }

    #[test]
    fn a_list_without_a_comparable_version_is_refused() {
        let page = page::<Named>(br#"{"metadata":{"resourceVersion":"abc"},"items":[]}"#);
        assert!(matches!(page, Err(DecodeError::Version(text)) if text == "abc"));
    }

    #[test]
    fn bookmarks_and_errors_are_read_without_decoding_an_object() {
        let bookmark = br#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}"#;
        let decoded = line::<Named>(bookmark).unwrap();
        assert_eq!(decoded, Input::Watch(WatchInput::Bookmark(Version::new(12))));
        let expired = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert_eq!(line::<Named>(expired).unwrap(), Input::Failed(Failure::Gone));
    }

    #[test]
    fn the_members_of_a_line_may_come_in_any_order() {
        let expected = Input::Watch(WatchInput::Added(Named { name: "a".into() }));
        let lines = [
            r#"{"type":"ADDED","object":{"name":"a"}}"#,
            r#"{"object":{"name":"a"},"more":[{}],"type":"ADDED"}"#,
            r#" { "more" : null , "type" : "\u0041DDED" , "object" : { "more": 1, "name" : "a" } } "#,
        ];
        for text in lines {
            assert_eq!(line(text.as_bytes()).unwrap(), expected, "{text}");
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
        for text in lines {
            let decoded = line::<Named>(text.as_bytes());
            assert!(
                matches!(decoded, Err(DecodeError::Json(_))),
                "{text}: {decoded:?}"
            );
        }
    }

    #[test]
    fn an_unknown_event_type_is_an_error() {
        let deleted = line(br#"{"type":"DELETED","object":{"name":"a","extra":1}}"#).unwrap();
        assert_eq!(
            deleted,
            Input::Watch(WatchInput::Deleted(Named { name: "a".into() }))
        );
        let unknown = line::<Named>(br#"{"type":"RENAMED","object":{}}"#);
        assert!(matches!(unknown, Err(DecodeError::Type(kind)) if kind == "RENAMED"));
    }
}
