//! NodeImages: what the node's agent needs to know of each tag.
//!
//! | Field | Rule |
//! |---|---|
//! | `images` | at most 256, each under a name |
//! | `images.*.tags[].tag` | there, once in an image |
//! | `images.*.tags[].createdAt`, `pullPolicy`, `pullPolicy.ttlSecondsAfterFinished` | there |
//! | `images.*.tags[].version` | not negative |
//!
//! Tags are sorted, and get a time of creation, a policy, its timeout and its limit of attempts.

use std::collections::BTreeSet;

use kube_schema::validate::{Errors, Kind};
use serde_json::Value;

use super::{KindWebhooks, Scope};
use crate::json::{fill, integer, items, made, present, text};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mnodeimage.kb.io"),
    validating: Some("vnodeimage.kb.io"),
    codes: (400, 400),
    gate: |options| (!options.daemon).then_some("KruiseDaemon"),
    defaults,
    rules,
    ..KindWebhooks::of(&kruise_api::nodeimage::KIND)
};

const MOST_IMAGES: usize = 256;
const TIMEOUT_SECONDS: i64 = 600;
const ATTEMPTS: i64 = 3;

fn defaults(object: &mut Value, scope: &Scope<'_>) {
    let now = scope.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let images = object.pointer_mut("/spec/images").and_then(Value::as_object_mut);
    for image in images.into_iter().flatten().map(|(_, image)| image) {
        let Some(tags) = image.get_mut("tags").and_then(Value::as_array_mut) else {
            continue;
        };
        for tag in tags.iter_mut() {
            fill(tag, "createdAt", now.as_str());
            if let Some(policy) = made(tag, "pullPolicy") {
                fill(policy, "timeoutSeconds", TIMEOUT_SECONDS);
                fill(policy, "backoffLimit", ATTEMPTS);
            }
        }
        tags.sort_by(|one, other| text(one, "tag").cmp(text(other, "tag")));
    }
}

fn rules(errors: &mut Errors, object: &Value, _: &Scope<'_>) {
    let Some(images) = object.pointer("/spec/images").and_then(Value::as_object) else {
        return;
    };
    if images.len() > MOST_IMAGES {
        errors.add("spec.images", Kind::TooMany(MOST_IMAGES as u64), images.len(), "");
    }
    for (name, image) in images {
        let path = format!("spec.images[{name}]");
        if name.is_empty() {
            errors.required("spec.images", "the name of an image is needed");
        }
        let mut seen = BTreeSet::new();
        for (index, tag) in items(image, "tags").iter().enumerate() {
            let path = format!("{path}.tags[{index}]");
            if !text(tag, "tag").is_empty() && !seen.insert(text(tag, "tag")) {
                errors.add(format!("{path}.tag"), Kind::Duplicate, text(tag, "tag"), "");
            }
            complete(errors, tag, &path);
        }
    }
}

fn complete(errors: &mut Errors, tag: &Value, path: &str) {
    if text(tag, "tag").is_empty() {
        errors.required(format!("{path}.tag"), "");
    }
    if present(tag, "createdAt").is_none() {
        errors.required(format!("{path}.createdAt"), "");
    }
    if let Some(version @ ..0) = integer(tag, "version") {
        errors.invalid(format!("{path}.version"), version, "must not be negative");
    }
    match present(tag, "pullPolicy") {
        None => errors.required(format!("{path}.pullPolicy"), ""),
        Some(policy) if present(policy, "ttlSecondsAfterFinished").is_none() => {
            errors.required(format!("{path}.pullPolicy.ttlSecondsAfterFinished"), "");
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::super::testing::{Case, NOW, case};
    use super::*;

    const IMAGES: Case = case("NodeImage", good);

    fn good() -> Value {
        json!({"images": {"nginx": {"tags": [
            {"tag": "1", "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": {"ttlSecondsAfterFinished": 60}},
            {"tag": "2", "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": {"ttlSecondsAfterFinished": 60}},
        ]}}})
    }

    #[test]
    fn tags_are_sorted_and_completed_and_nothing_else_changes() {
        for version in ["v1alpha1", "v1beta1"] {
            let spec = json!({"newerThanUs": 1, "images": {"nginx": {"tags": [
                {"tag": "2", "pullPolicy": {"timeoutSeconds": 9}, "newerThanUs": 2},
                {"tag": "1", "createdAt": "2026-01-01T00:00:00Z"},
            ]}, "empty": {}}});
            let expected = json!({"newerThanUs": 1, "images": {"nginx": {"tags": [
                {"tag": "1", "createdAt": "2026-01-01T00:00:00Z",
                 "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3}},
                {"tag": "2", "createdAt": NOW, "pullPolicy": {"timeoutSeconds": 9, "backoffLimit": 3},
                 "newerThanUs": 2},
            ]}, "empty": {}}});
            assert_eq!(IMAGES.mutated(version, &spec), expected);
        }
        assert_eq!(IMAGES.mutated("v1beta1", &json!({})), json!({}));
    }

    #[test]
    fn each_broken_rule_is_refused_with_its_field() {
        let first = |member: &str| format!("images.nginx.tags.0.{member}");
        let at = |member: &str| format!("spec.images[nginx].tags[0].{member}: Required");
        IMAGES.each_is_refused(&[
            (&first("tag"), json!(""), &at("tag")),
            (
                &first("tag"),
                json!("2"),
                "spec.images[nginx].tags[1].tag: Duplicate",
            ),
            (&first("createdAt"), Value::Null, &at("createdAt")),
            (
                &first("version"),
                json!(-1),
                "spec.images[nginx].tags[0].version: Invalid",
            ),
            (&first("pullPolicy"), Value::Null, &at("pullPolicy")),
            (
                &first("pullPolicy.ttlSecondsAfterFinished"),
                Value::Null,
                &at("pullPolicy.ttlSecondsAfterFinished"),
            ),
        ]);
    }

    #[test]
    fn images_are_named_and_not_too_many() {
        let of = |names: Vec<String>| {
            let images: Map<String, Value> = names
                .into_iter()
                .map(|name| (name, json!({"tags": []})))
                .collect();
            IMAGES.refused("v1beta1", &json!({"images": images}))
        };
        let many = |count: usize| (0..count).map(|n| format!("image-{n}")).collect();
        assert_eq!(of(many(256)), None);
        assert!(of(many(257)).unwrap().contains("spec.images: Too many"));
        assert!(of(vec![String::new()]).unwrap().contains("spec.images: Required"));
    }
}
