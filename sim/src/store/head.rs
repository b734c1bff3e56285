//! What is known of an object without reading its text.

use serde_json::Value;

use crate::object::at;

/// The parts of an object that lists, watches and garbage collection use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) uid: Box<str>,
    /// Sorted by key.
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the resource's selectable fields, in the order of its definition.
    pub(crate) fields: Box<[Box<str>]>,
    /// Uids of the owners.
    pub(crate) owners: Box<[Box<str>]>,
    /// Whether the object is being deleted.
    pub(crate) deleting: bool,
    /// `metadata.generation`; zero where there is none.
    pub(crate) generation: i64,
}

impl Head {
    /// Reads the head of an object; `fields` are the selectable fields' JSON pointers.
    pub(crate) fn of<'a>(object: &Value, fields: impl Iterator<Item = &'a str>) -> Self {
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let labels = metadata.get("labels").and_then(Value::as_object);
        let owners = metadata.get("ownerReferences").and_then(Value::as_array);
        Self {
            uid: text(metadata.get("uid")),
            labels: labels
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.as_str().into(), text(Some(value))))
                .collect(),
            fields: fields.map(|pointer| text(at(object, pointer))).collect(),
            owners: owners
                .into_iter()
                .flatten()
                .map(|owner| text(owner.get("uid")))
                .collect(),
            deleting: metadata
                .get("deletionTimestamp")
                .is_some_and(|time| !time.is_null()),
            generation: metadata.get("generation").and_then(Value::as_i64).unwrap_or(0),
        }
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let at = self
            .labels
            .binary_search_by(|(name, _)| name.as_ref().cmp(key))
            .ok()?;
        self.labels.get(at).map(|(_, value)| value.as_ref())
    }
}

/// A scalar as field selectors see it.
fn text(value: Option<&Value>) -> Box<str> {
    match value {
        Some(Value::String(text)) => text.as_str().into(),
        Some(Value::Bool(truth)) => truth.to_string().into(),
        Some(Value::Number(number)) => number.to_string().into(),
        _ => "".into(),
    }
}
