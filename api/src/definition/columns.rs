//! Columns of `kubectl get`.

use serde_json::{Value, json};

/// A number.
pub fn count(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "integer", "jsonPath": path})
}

/// A text.
pub fn text(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "string", "jsonPath": path})
}

/// A text that only `-o wide` shows.
pub fn wide(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "string", "jsonPath": path, "priority": 1})
}

/// Time that has passed since then.
pub fn since(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "date", "jsonPath": path})
}

/// Time that has passed since the object was made.
pub fn age(name: &str) -> Value {
    since(name, ".metadata.creationTimestamp")
}
