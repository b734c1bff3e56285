//! Path elements as text.

use serde_json::{Map, Value};

/// The element of an item that these keys identify.
pub(super) fn by_keys(keys: Map<String, Value>) -> String {
    format!("k:{}", Value::Object(keys))
}

/// The element of a scalar in a set.
pub(super) fn by_value(value: &Value) -> String {
    format!("v:{value}")
}

/// An element as this program writes it.
pub(super) fn normal(key: &str) -> String {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    match key.split_at_checked(2) {
        Some(("k:", text)) => parsed(text).map_or_else(|| key.to_owned(), |keys| format!("k:{keys}")),
        Some(("v:", text)) => parsed(text).map_or_else(|| key.to_owned(), |value| format!("v:{value}")),
        _ => key.to_owned(),
    }
}

/// An element as messages show it.
pub(super) fn shown(key: &str) -> String {
    let Some((kind, text)) = key.split_at_checked(2) else {
        return key.to_owned();
    };
    match kind {
        "f:" => format!(".{text}"),
        "k:" => {
            let keys: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
            let pairs: Vec<String> = keys
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!("[{}]", pairs.join(","))
        }
        "v:" => format!("[={text}]"),
        _ => format!("[{text}]"),
    }
}
