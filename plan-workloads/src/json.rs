//! Raw JSON, as templates have it.

use serde_json::{Map, Value};

/// The members of an object; none of anything else.
pub(crate) fn members(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}
