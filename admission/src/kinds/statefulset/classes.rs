//! Whether the claims of a StatefulSet can be resized where their templates are: that is a matter of the storage class.
//!
//! A class that does not say so cannot expand: a server would refuse each claim later on.

use go_compat::quantity::Quantity;
use kruise_api::names;
use kube_schema::validate::{self, Errors};
use serde_json::Value;

use super::changes::{CLAIMS, claims_follow, name_of};
use crate::json::{items, text};
use crate::kinds::Scope;
use crate::lookup::{Lookup, Read, Reader};

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const IS_DEFAULT: &str = names::statefulset::DEFAULT_CLASS;

/// Refuses another size where the class cannot expand, of claims that follow their templates.
pub(super) fn check(errors: &mut Errors, new: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    let Some(old) = scope.old.filter(|_| claims_follow(new, scope)) else {
        return;
    };
    let templates = |object: &Value| {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        items(spec, "volumeClaimTemplates").to_vec()
    };
    let stored = templates(old);
    for (index, claim) in templates(new).iter().enumerate() {
        let before = stored.iter().find(|one| name_of(one) == name_of(claim));
        if let Some(before) = before.filter(|before| size(before) != size(claim)) {
            let path = format!("{CLAIMS}[{index}].spec.resources");
            expandable(
                errors,
                &path,
                class_of(claim).or_else(|| class_of(before)),
                reader,
            );
        }
    }
}

/// What a claim asks for, and its limit. What cannot be read is refused by other rules.
fn size(claim: &Value) -> [Option<i128>; 2] {
    ["requests", "limits"].map(|name| {
        let amount = claim.pointer(&format!("/spec/resources/{name}/storage"))?;
        Some(Quantity::from_json(amount).ok()?.thousandths())
    })
}

fn class_of(claim: &Value) -> Option<&str> {
    claim.pointer("/spec/storageClassName")?.as_str()
}

fn expandable(errors: &mut Errors, path: &str, named: Option<&str>, reader: &mut Reader<'_>) {
    let class = match named {
        // whoever makes the volumes by hand knows
        Some("") => return,
        Some(name) if !validate::is_dns_subdomain(name) => None,
        Some(name) => match reader.object(Lookup::Path(format!("{CLASSES}/{name}"))) {
            Read::Missing => return,
            found => found.found(),
        },
        // without a default there is no class at all
        None => match reader
            .object(Lookup::Path(CLASSES.to_owned()))
            .found()
            .and_then(default)
        {
            None => return,
            found => found,
        },
    };
    match class {
        None => errors.invalid(path, named.unwrap_or_default(), "there is no such storage class"),
        Some(class) if class.get("allowVolumeExpansion") != Some(&Value::Bool(true)) => {
            let detail = format!(
                "storage class {} does not allow volumes to be expanded",
                name_of(class)
            );
            errors.forbidden(path, &detail);
        }
        Some(_) => {}
    }
}

/// The newest class that is marked as the default; by name, of two of the same second.
fn default(list: &Value) -> Option<&Value> {
    let is_default = |class: &&Value| {
        let annotations = class.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(IS_DEFAULT)) == Some(&Value::String("true".to_owned()))
    };
    let age = |class: &&Value| {
        let metadata = class.get("metadata").unwrap_or(&Value::Null);
        (
            text(metadata, "creationTimestamp").to_owned(),
            std::cmp::Reverse(text(metadata, "name").to_owned()),
        )
    };
    items(list, "items").iter().filter(is_default).max_by_key(age)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Case, case};
    use super::*;
    use crate::Options;

    const CASE: Case = case("StatefulSet", || Value::Null).with(Options {
        claims_resized: true,
        ..Options::DEFAULT
    });

    fn set(class: Option<&str>, size: &str) -> Value {
        let mut claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}});
        if let Some(class) = class {
            claim["spec"]["storageClassName"] = json!(class);
        }
        CASE.object("v1beta1", &json!({
            "selector": {"matchLabels": {"app": "db"}}, "podManagementPolicy": "OrderedReady",
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "m", "image": "m:1"}]}},
            "updateStrategy": {"type": "OnDelete"}, "volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"},
            "volumeClaimTemplates": [claim],
        }))
    }

    fn class(name: &str, expands: Value, made: &str) -> Value {
        json!({"metadata": {"name": name, "creationTimestamp": made, "annotations": {IS_DEFAULT: "true"}},
               "allowVolumeExpansion": expands})
    }

    fn resized(name: Option<&str>, seen: &[(&str, Value)]) -> Option<String> {
        CASE.seeing(seen, "UPDATE", &set(name, "2Gi"), &set(name, "1Gi"))
    }

    #[test]
    fn claims_grow_only_where_their_class_expands() {
        let path = format!("{CLASSES}/slow");
        let at = |class: Value| [(path.as_str(), class)];
        assert_eq!(resized(Some("slow"), &at(class("slow", json!(true), ""))), None);
        for expands in [json!(false), Value::Null] {
            let message = resized(Some("slow"), &at(class("slow", expands, ""))).unwrap();
            assert!(
                message
                    .contains("spec.volumeClaimTemplates[0].spec.resources: Forbidden: storage class slow"),
                "{message}"
            );
        }
        let message = resized(Some("slow"), &at(Value::Null)).unwrap();
        assert!(
            message.contains("Invalid value: \"slow\": there is no such storage class"),
            "{message}"
        );
    }

    #[test]
    fn claims_shrink_where_their_class_expands() {
        let path = format!("{CLASSES}/slow");
        for (expands, refused) in [(true, false), (false, true)] {
            let class = class("slow", json!(expands), "");
            let message = CASE.seeing(
                &[(&path, class)],
                "UPDATE",
                &set(Some("slow"), "1Gi"),
                &set(Some("slow"), "2Gi"),
            );
            assert_eq!(message.is_some(), refused, "{message:?}");
        }
    }

    #[test]
    fn a_limit_is_a_size_and_a_class_that_says_nothing_does_not_expand() {
        let path = format!("{CLASSES}/slow");
        let mut silent = class("slow", json!(true), "");
        silent.as_object_mut().unwrap().remove("allowVolumeExpansion");
        let mut new = set(Some("slow"), "1Gi");
        new["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["limits"] = json!({"storage": "2Gi"});
        let old = set(Some("slow"), "1Gi");
        let message = CASE.seeing(&[(&path, silent)], "UPDATE", &new, &old).unwrap();
        assert!(
            message.contains("does not allow volumes to be expanded"),
            "{message}"
        );
        assert_eq!(
            CASE.seeing(&[(&path, class("slow", json!(true), ""))], "UPDATE", &new, &old),
            None
        );
    }

    #[test]
    fn without_a_class_the_newest_default_counts() {
        let older = class("older", json!(false), "2026-01-01T00:00:00Z");
        let newer = class("newer", json!(true), "2026-01-02T00:00:00Z");
        let mut none = class("none", json!(false), "2026-01-03T00:00:00Z");
        none["metadata"]["annotations"] = json!({});
        for order in [[&older, &newer, &none], [&none, &newer, &older]] {
            let list = json!({"items": order});
            assert_eq!(resized(None, &[(CLASSES, list)]), None);
        }
        let message = resized(None, &[(CLASSES, json!({"items": [older]}))]).unwrap();
        assert!(message.contains("storage class older"), "{message}");
        assert_eq!(resized(None, &[(CLASSES, json!({"items": [none]}))]), None);
    }

    #[test]
    fn the_class_is_asked_only_for_another_size_that_claims_follow() {
        assert_eq!(
            CASE.seeing(
                &[],
                "UPDATE",
                &set(Some("slow"), "1024Mi"),
                &set(Some("slow"), "1Gi")
            ),
            None
        );
        assert_eq!(
            CASE.seeing(&[], "UPDATE", &set(Some(""), "2Gi"), &set(Some(""), "1Gi")),
            None
        );
        let mut left = set(Some("slow"), "2Gi");
        left["spec"]["volumeClaimUpdateStrategy"]["type"] = json!("OnDelete");
        assert_eq!(CASE.seeing(&[], "UPDATE", &left, &set(Some("slow"), "1Gi")), None);
        let off = case("StatefulSet", || Value::Null);
        assert_eq!(
            off.seeing(
                &[],
                "UPDATE",
                &set(Some("slow"), "2Gi"),
                &set(Some("slow"), "1Gi")
            ),
            None
        );
    }
}
