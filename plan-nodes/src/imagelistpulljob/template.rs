//! What the jobs of a list have in common.

use go_compat::hash::{fnv1a_32, safe_encode};
use serde_json::{Map, Value, json};

/// The specification of the list without its images: that of its jobs without their image.
pub(super) fn of_list(stored: &Value) -> Value {
    without(stored, "images")
}

/// The specification of a job without its image.
pub(super) fn of_job(stored: &Value) -> Value {
    without(stored, "image")
}

fn without(stored: &Value, member: &str) -> Value {
    let mut template = stored.clone();
    if let Some(members) = template.as_object_mut() {
        members.remove(member);
    }
    template
}

/// Do two templates say the same, once what is left out has its default?
pub(super) fn are_equal(one: &Value, other: &Value) -> bool {
    completed(one) == completed(other)
}

/// A hash of what the template says, as a label value.
pub(super) fn hash(template: &Value) -> String {
    let text = completed(template).to_string();
    safe_encode(&fnv1a_32(text.as_bytes()).to_string())
}

/// The template with its defaults, and without members that say nothing. Members are in order.
fn completed(template: &Value) -> Value {
    let mut template = cleared(template).unwrap_or_else(|| json!({}));
    for (path, default) in [
        (&["imagePullPolicy"][..], json!("IfNotPresent")),
        (&["completionPolicy", "type"], json!("Always")),
        (&["pullPolicy", "timeoutSeconds"], json!(600)),
        (&["pullPolicy", "backoffLimit"], json!(3)),
    ] {
        fill(&mut template, path, default);
    }
    template
}

fn fill(into: &mut Value, path: &[&str], default: Value) {
    match (path, into.as_object_mut()) {
        ([key], Some(members)) => drop(members.entry(*key).or_insert(default)),
        ([key, rest @ ..], Some(members)) => {
            fill(members.entry(*key).or_insert_with(|| json!({})), rest, default);
        }
        _ => {}
    }
}

/// Without nulls and empty objects and lists. Selectors are an exception: an empty one selects all.
fn cleared(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(members) => {
            let kept = members.iter().filter_map(|(key, value)| {
                let is_selector = ["selector", "podSelector"].contains(&key.as_str()) && value.is_object();
                let is_names = key == "names" && value.is_array();
                let kept = cleared(value);
                let kept = if is_selector {
                    kept.or(Some(json!({})))
                } else {
                    kept
                };
                let kept = if is_names { kept.or(Some(json!([]))) } else { kept };
                Some((key.clone(), kept?))
            });
            let kept: Map<String, Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) if items.is_empty() => None,
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_equal_if_they_say_the_same_with_their_defaults() {
        let short = json!({"parallelism": 5, "completionPolicy": {}});
        let full = json!({
            "completionPolicy": {"type": "Always", "activeDeadlineSeconds": null},
            "imagePullPolicy": "IfNotPresent", "parallelism": 5, "pullSecrets": [],
            "pullPolicy": {"backoffLimit": 3, "timeoutSeconds": 600},
        });
        assert!(are_equal(&short, &full));
        assert_eq!(hash(&short), hash(&full));
        for (path, value) in [
            ("/parallelism", json!(6)),
            ("/completionPolicy/type", json!("Never")),
            ("/pullPolicy/backoffLimit", json!(1)),
        ] {
            let mut other = full.clone();
            *other.pointer_mut(path).unwrap() = value;
            assert!(!are_equal(&short, &other), "{path}");
            assert_ne!(hash(&short), hash(&other), "{path}");
        }
    }

    #[test]
    fn an_empty_selector_is_not_the_same_as_none() {
        let none = json!({});
        for selector in [
            json!({"selector": {}}),
            json!({"selector": {"names": []}}),
            json!({"podSelector": {}}),
        ] {
            assert!(!are_equal(&none, &selector), "{selector}");
        }
        assert!(!are_equal(
            &json!({"selector": {}}),
            &json!({"selector": {"names": []}})
        ));
    }
}
