//! The node affinity of a pod.

use serde_json::{Map, Value};

/// Appends preferences to the node affinity. One that is there already is not added.
pub(super) fn prefer(spec: &mut Map<String, Value>, preferences: Vec<Value>) {
    let terms = of_nodes(spec)
        .and_then(|affinity| array(affinity, "preferredDuringSchedulingIgnoredDuringExecution"));
    let Some(terms) = terms else {
        return;
    };
    for preference in preferences {
        if !terms.contains(&preference) {
            terms.push(preference);
        }
    }
}

/// The node affinity, made if it is absent.
pub(super) fn of_nodes(spec: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    object(object(spec, "affinity")?, "nodeAffinity")
}

/// A member that is an object, made if it is absent.
pub(super) fn object<'a>(
    parent: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let member = parent.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Object(Map::new());
    }
    member.as_object_mut()
}

/// A member that is a list, made if it is absent.
pub(super) fn array<'a>(parent: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Vec<Value>> {
    let member = parent.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Array(Vec::new());
    }
    member.as_array_mut()
}
