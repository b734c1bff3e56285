//! A revision of a set: the parts of its specification that are injected.

use go_compat::{
    json::{Integers, encode},
    pod_template::CoreType,
};
use serde_json::{Map, Value, json};

use super::shape;

/// Name of a part, and how Go would write one of its items.
type Part = (&'static str, fn(&Value) -> Value);

/// The parts of a specification that a revision holds.
const PARTS: [Part; 5] = [
    ("containers", shape::sidecar),
    ("imagePullSecrets", shape::secret),
    ("initContainers", shape::sidecar),
    ("patchPodMetadata", shape::metadata_patch),
    ("volumes", volume),
];

fn volume(volume: &Value) -> Value {
    CoreType::Volume.canonical(volume)
}

/// Data of the revision of a specification. These bytes are hashed for its name.
pub fn revision_data(spec: &Value) -> String {
    let mut data = Map::new();
    data.insert("$patch".to_owned(), "replace".into());
    for (name, canonical) in PARTS {
        let list = spec.get(name).and_then(Value::as_array);
        let list = list.filter(|list| !list.is_empty());
        let list = list.map(|list| list.iter().map(canonical).collect::<Vec<_>>());
        data.insert(name.to_owned(), list.into());
    }
    encode(&json!({"spec": data}), Integers::AsFloat)
}

/// The specification a set had: its own, with the parts a revision holds instead of today's. `data` is the member
/// `data` of a stored revision; `None` if it is no such thing.
pub fn restore(spec: &Value, data: &Value) -> Option<Value> {
    let stored = data.get("spec")?.as_object()?;
    let mut restored = spec.as_object()?.clone();
    for (name, _) in PARTS {
        match stored.get(name).filter(|part| part.is_array()) {
            Some(part) => restored.insert(name.to_owned(), part.clone()),
            None => restored.remove(name),
        };
    }
    Some(restored.into())
}
