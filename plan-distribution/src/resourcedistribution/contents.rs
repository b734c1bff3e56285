//! Contents of a Secret or ConfigMap in one form, so that two that mean the same are equal.
//!
//! The API server stores `stringData` of a Secret in `data`, gives it the type `Opaque` if it has none, writes
//! bytes in one spelling of base64, and leaves out what is empty.

use std::collections::BTreeMap;

use base64::{
    Engine,
    engine::{GeneralPurpose, general_purpose::STANDARD},
};
use kruise_plan_kit::ResourceId;
use serde_json::{Map, Value, json};

/// The type of a Secret that names none.
const OPAQUE: &str = "Opaque";

/// What a Secret or ConfigMap holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// `data`, `binaryData`: values by key.
    maps: BTreeMap<&'static str, BTreeMap<String, String>>,
    /// Type of a Secret; empty for a ConfigMap.
    kind: String,
    immutable: bool,
}

impl Contents {
    pub(super) fn of(resource: ResourceId, object: &Value) -> Self {
        let is_secret = resource == ResourceId::SECRETS;
        let plain = |member: &str| texts(object.get(member), str::to_owned);
        let bytes = |member: &str| texts(object.get(member), one_spelling);
        let maps = if is_secret {
            let mut data = bytes("data");
            data.extend(texts(object.get("stringData"), |text| STANDARD.encode(text)));
            BTreeMap::from([("data", data)])
        } else {
            BTreeMap::from([("binaryData", bytes("binaryData")), ("data", plain("data"))])
        };
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        Self {
            maps,
            kind: match kind {
                "" if is_secret => OPAQUE.to_owned(),
                kind if is_secret => kind.to_owned(),
                _ => String::new(),
            },
            immutable: object.get("immutable") == Some(&Value::Bool(true)),
        }
    }

    /// Writes them into an object that is to be created.
    pub(super) fn fill(self, object: &mut Map<String, Value>) {
        object.remove("stringData");
        for (member, texts) in self.maps {
            if texts.is_empty() {
                object.remove(member);
            } else {
                object.insert(member.to_owned(), json!(texts));
            }
        }
        if !self.kind.is_empty() {
            object.insert("type".to_owned(), self.kind.into());
        }
    }

    /// The members of a merge patch that makes `stored` these; empty if it is.
    pub(super) fn changes(&self, stored: &Self) -> Map<String, Value> {
        let mut changes = Map::new();
        for (member, texts) in &self.maps {
            let have = stored.maps.get(member);
            let differs =
                |(key, text): &(&String, &String)| have.and_then(|have| have.get(*key)) != Some(*text);
            let wanted = texts
                .iter()
                .filter(differs)
                .map(|(key, text)| (key.clone(), json!(text)));
            let is_extra = |key: &&String| !texts.contains_key(*key);
            let extra = have.into_iter().flat_map(BTreeMap::keys).filter(is_extra);
            let members: Map<String, Value> = wanted
                .chain(extra.map(|key| (key.clone(), Value::Null)))
                .collect();
            if !members.is_empty() {
                changes.insert((*member).to_owned(), members.into());
            }
        }
        if self.kind != stored.kind {
            changes.insert("type".to_owned(), self.kind.clone().into());
        }
        if self.immutable != stored.immutable {
            changes.insert("immutable".to_owned(), self.immutable.into());
        }
        changes
    }
}

/// A map of texts. A `null` is the empty text, as the API server reads it.
fn texts(map: Option<&Value>, form: impl Fn(&str) -> String) -> BTreeMap<String, String> {
    let members = map.and_then(Value::as_object).into_iter().flatten();
    members
        .map(|(key, value)| (key.clone(), form(value.as_str().unwrap_or_default())))
        .collect()
}

/// Bytes as the API server writes them. What is no base64 stays: the server refuses it.
fn one_spelling(text: &str) -> String {
    // Go's decoder skips line breaks, and takes any bits beyond the last byte.
    let unbroken: String = text
        .chars()
        .filter(|letter| !matches!(letter, '\r' | '\n'))
        .collect();
    let lenient = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    lenient
        .decode(&unbroken)
        .map_or_else(|_| text.to_owned(), |bytes| STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(object: Value) -> Contents {
        Contents::of(ResourceId::SECRETS, &object)
    }

    #[test]
    fn what_the_server_makes_of_a_secret_is_the_same() {
        let stored = secret(json!({"type": "Opaque", "data": {"a": "YQ==", "b": "Yg=="}}));
        for written in [
            json!({"data": {"a": "YQ==", "b": "Yg=="}}),
            json!({"type": "", "data": {"a": "YQ\n=="}, "stringData": {"b": "b"}}),
            json!({"immutable": false, "data": {"a": "YQ==", "b": "eA=="}, "stringData": {"b": "b"}}),
            json!({"data": {"a": "YR==", "b": "Yg=="}}),
        ] {
            assert_eq!(secret(written.clone()), stored, "{written}");
            assert!(secret(written).changes(&stored).is_empty());
        }
        let empty = secret(json!({"data": {"none": null}}));
        assert_eq!(empty, secret(json!({"data": {"none": ""}})));
    }

    #[test]
    fn a_patch_names_what_differs_and_removes_what_is_extra() {
        let wanted = secret(json!({"type": "kubernetes.io/tls", "data": {"a": "YQ==", "b": "Yg=="}}));
        let stored = secret(json!({"data": {"a": "YQ==", "c": "Yw=="}, "immutable": true}));
        assert_eq!(
            Value::from(wanted.changes(&stored)),
            json!({"data": {"b": "Yg==", "c": null}, "type": "kubernetes.io/tls", "immutable": false})
        );
        let map = |object: Value| Contents::of(ResourceId::CONFIG_MAPS, &object);
        let wanted = map(json!({"data": {"a": "1"}, "binaryData": {"b": "Yg=="}}));
        let stored = map(json!({"data": {"a": "1"}, "type": "no member of it"}));
        assert_eq!(
            Value::from(wanted.changes(&stored)),
            json!({"binaryData": {"b": "Yg=="}})
        );
    }
}
