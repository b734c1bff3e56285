//! Builder for the schema of an object: one line for each field.

use serde_json::{Map, Value, json};

use super::{boolean, int_or_string, int32, int64, list, string, text_items, text_map, time, with};

/// Schema of an object under construction.
#[derive(Clone, Debug)]
pub struct Object {
    help: &'static str,
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

impl Object {
    /// An object without members.
    pub fn new(help: &'static str) -> Self {
        Self {
            help,
            properties: Map::new(),
            required: Vec::new(),
        }
    }

    /// A member of any schema.
    #[must_use]
    pub fn with(mut self, name: &str, schema: impl Into<Value>) -> Self {
        self.properties.insert(name.to_owned(), schema.into());
        self
    }

    /// All members of another description.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.properties.extend(other.properties);
        self.required.extend(other.required);
        self
    }

    /// A text.
    #[must_use]
    pub fn text(self, name: &str, help: &str) -> Self {
        self.with(name, string(help))
    }

    /// A list of texts.
    #[must_use]
    pub fn texts(self, name: &str, help: &str) -> Self {
        self.with(name, list(help, text_items()))
    }

    /// A map of texts.
    #[must_use]
    pub fn text_map(self, name: &str, help: &str, values: &str) -> Self {
        self.with(name, text_map(help, values))
    }

    /// True or false.
    #[must_use]
    pub fn flag(self, name: &str, help: &str) -> Self {
        self.with(name, boolean(help))
    }

    /// A signed 32-bit number.
    #[must_use]
    pub fn int32(self, name: &str, help: &str) -> Self {
        self.with(name, int32(help))
    }

    /// A signed 64-bit number.
    #[must_use]
    pub fn int64(self, name: &str, help: &str) -> Self {
        self.with(name, int64(help))
    }

    /// A number, or a percentage as text.
    #[must_use]
    pub fn int_or_string(self, name: &str, help: &str) -> Self {
        self.with(name, int_or_string(help))
    }

    /// A time, RFC 3339.
    #[must_use]
    pub fn time(self, name: &str, help: &str) -> Self {
        self.with(name, time(help))
    }

    /// A list of objects.
    #[must_use]
    pub fn list(self, name: &str, help: &str, items: impl Into<Value>) -> Self {
        self.with(name, list(help, items.into()))
    }

    /// Members that must be there.
    #[must_use]
    pub fn required(mut self, names: &[&'static str]) -> Self {
        self.required.extend(names);
        self
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        let mut schema =
            json!({"type": "object", "description": object.help, "properties": object.properties});
        if !object.required.is_empty() {
            schema = with(schema, "required", json!(object.required));
        }
        schema
    }
}
