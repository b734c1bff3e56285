//! Which form of an answer a client takes.

use crate::route::Target;
use crate::status::Failure;

/// The form of objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Whole,
    /// Only their metadata.
    Metadata,
    /// Only their metadata, of a list.
    MetadataList,
    /// Rows with columns for people.
    Table,
}

const OBJECTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
const LISTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

impl Form {
    /// The first form of the `Accept` header that is served.
    pub(crate) fn of(accept: &str, target: &Target) -> Result<Self, Failure> {
        if accept.trim().is_empty() {
            return Ok(Self::Whole);
        }
        let mut other_form = false;
        for clause in accept.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            if !matches!(kind, "application/json" | "application/*" | "*/*") {
                continue;
            }
            let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
            let of = |name: &str| {
                parameters
                    .iter()
                    .find(|(one, _)| *one == name)
                    .map(|(_, value)| *value)
            };
            let is_meta = of("g") == Some("meta.k8s.io") && matches!(of("v"), Some("v1" | "v1beta1"));
            match of("as") {
                None => return Ok(Self::Whole),
                Some("Table") if is_meta => return Ok(Self::Table),
                Some("PartialObjectMetadata") if is_meta => return Ok(Self::Metadata),
                Some("PartialObjectMetadataList") if is_meta => return Ok(Self::MetadataList),
                Some(_) => other_form = true,
            }
        }
        if other_form {
            return Err(Failure::not_acceptable_custom());
        }
        let is_list = target.name.is_empty();
        Err(Failure::not_acceptable(if is_list { LISTS } else { OBJECTS }))
    }
}
