//! List pages and watch lines as the API server writes them, decoded straight into a (narrow) type.
//!
//! The object of a watch line is decoded after its type is known: bookmarks and errors are no objects of the resource.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{Failure, Input, Version, WatchInput};

/// A list page or watch line that is not what the API promises. Report [`Failure::Malformed`].
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

#[derive(Deserialize)]
struct Line<'a> {
    r#type: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: ListMeta,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    reason: String,
}

/// Decodes the body of a list answer into [`Input::Page`].
pub fn decode_page<T: DeserializeOwned>(body: &[u8]) -> Result<Input<T>, DecodeError> {
    let list: List<T> = serde_json::from_slice(body)?;
    let version = parse_version(list.metadata.resource_version)?;
    Ok(Input::Page {
        items: list.items,
        version,
        continue_token: list.metadata.r#continue,
    })
}

/// Decodes one line of a watch into [`Input::Watch`], or [`Input::Failed`] for an `ERROR` event.
pub fn decode_watch_line<T: DeserializeOwned>(line: &[u8]) -> Result<Input<T>, DecodeError> {
    let line: Line<'_> = serde_json::from_slice(line)?;
    let object = line.object.get();
    let event = match line.r#type.as_str() {
        "ADDED" => WatchInput::Added(serde_json::from_str(object)?),
        "MODIFIED" => WatchInput::Modified(serde_json::from_str(object)?),
        "DELETED" => WatchInput::Deleted(serde_json::from_str(object)?),
        "BOOKMARK" => {
            let bookmark: Bookmark = serde_json::from_str(object)?;
            WatchInput::Bookmark(parse_version(bookmark.metadata.resource_version)?)
        }
        "ERROR" => {
            let status: Status = serde_json::from_str(object)?;
            return Ok(Input::Failed(Failure::from_status(
                status.code,
                &status.reason,
                None,
            )));
        }
        _ => return Err(DecodeError::Type(line.r#type)),
    };
    Ok(Input::Watch(event))
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
    fn objects_and_unknown_types_are_told_apart() {
        let deleted = decode_watch_line(br#"{"type":"DELETED","object":{"name":"a","extra":1}}"#).unwrap();
        assert_eq!(
            deleted,
            Input::Watch(WatchInput::Deleted(Named { name: "a".into() }))
        );
        let unknown = decode_watch_line::<Named>(br#"{"type":"RENAMED","object":{}}"#);
        assert!(matches!(unknown, Err(DecodeError::Type(kind)) if kind == "RENAMED"));
    }
}
