//! The hashes of a set: over its containers, and its init containers if one of them keeps running.

use go_compat::{hash::safe_encode, sha256};
use serde_json::{Map, Value};

use super::{
    fields::{annotation, items},
    names, shape,
    twins::is_native,
};

/// Hashes of the containers of a set, on the set and on every pod injected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// Changes with anything about the containers.
    pub full: String,
    /// Changes with anything but images: pods whose value differs cannot be upgraded in place.
    pub without_image: String,
}

/// The hashes of a specification with its defaults filled in. Volumes, secrets, metadata patches and selectors do not
/// count.
pub fn hashes(spec: &Value) -> Hashes {
    Hashes {
        full: hash(spec, Image::Kept),
        without_image: hash(spec, Image::Cleared),
    }
}

/// The hashes recorded on a set or on one of its revisions; those of its specification where none are.
pub fn hashes_of(set: &Value) -> Hashes {
    let (full, without_image) = (
        annotation(set, names::HASH),
        annotation(set, names::HASH_WITHOUT_IMAGE),
    );
    if full.is_empty() || without_image.is_empty() {
        return hashes(set.get("spec").unwrap_or(&Value::Null));
    }
    Hashes {
        full: full.to_owned(),
        without_image: without_image.to_owned(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Image {
    Kept,
    Cleared,
}

fn hash(spec: &Value, image: Image) -> String {
    let mut text = format!(r#"{{"containers":{}"#, list(spec.get("containers"), image));
    if items(spec, "initContainers").iter().any(is_native) {
        text.push_str(r#","initContainers":"#);
        text.push_str(&list(spec.get("initContainers"), image));
    }
    text.push('}');
    safe_encode(&sha256::hex(text.as_bytes()))
}

fn list(containers: Option<&Value>, image: Image) -> String {
    let Some(containers) = containers.and_then(Value::as_array) else {
        return "null".to_owned();
    };
    let texts = containers.iter().map(|container| {
        if image == Image::Kept {
            return shape::sidecar_json(container);
        }
        let members = container.as_object().into_iter().flatten();
        let others = members.filter(|(name, _)| *name != "image");
        let without: Map<String, Value> = others
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        shape::sidecar_json(&without.into())
    });
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}
