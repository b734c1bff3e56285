//! What an UPDATE of a StatefulSet must leave alone.

use std::collections::BTreeMap;

use kube_schema::validate::Errors;
use serde_json::Value;

use crate::json::{items, member, text};
use crate::kinds::Scope;
use crate::workload;

pub(super) const CLAIMS: &str = "spec.volumeClaimTemplates";

/// Compares the new object with the stored one.
pub(super) fn check(errors: &mut Errors, object: &Value, old: &Value, scope: &Scope<'_>) {
    let (Some(new), Some(old)) = (member(object, "spec"), member(old, "spec")) else {
        return;
    };
    workload::same_selector(errors, new, old);
    // what was stored without a default means the default
    for (name, default) in [("serviceName", ""), ("podManagementPolicy", "OrderedReady")] {
        let value = |spec| {
            match text(spec, name) {
                "" => default,
                given => given,
            }
            .to_owned()
        };
        if value(new) != value(old) {
            errors.invalid(format!("spec.{name}"), value(new), "field is immutable");
        }
    }
    let rolling = new
        .pointer("/updateStrategy/rollingUpdate")
        .unwrap_or(&Value::Null);
    if text(rolling, "podUpdatePolicy") == "InPlaceOnly" {
        workload::changes_in_place(errors, new, old, scope.options, scope.options.vertical_scaling);
    }
    if claims_follow(object, scope) {
        claims(
            errors,
            items(new, "volumeClaimTemplates"),
            items(old, "volumeClaimTemplates"),
        );
    }
}

/// Do claims follow their templates?
pub(super) fn claims_follow(set: &Value, scope: &Scope<'_>) -> bool {
    let kind = set.pointer("/spec/volumeClaimUpdateStrategy/type");
    scope.options.claims_resized && kind.and_then(Value::as_str) == Some("OnPodRollingUpdate")
}

/// Name in the metadata.
pub(super) fn name_of(object: &Value) -> &str {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default()
}

/// Claims that follow their templates can only be resized.
fn claims(errors: &mut Errors, new: &[Value], old: &[Value]) {
    let known: BTreeMap<&str, &Value> = old.iter().map(|claim| (name_of(claim), claim)).collect();
    if new.len() != old.len() {
        let detail = "claim templates can neither be added nor removed while claims follow them";
        errors.invalid(CLAIMS, new.len(), detail);
    }
    for (index, claim) in new.iter().enumerate() {
        let path = format!("{CLAIMS}[{index}]");
        let Some(old) = known.get(name_of(claim)) else {
            errors.forbidden(path, "there was no claim template of this name");
            continue;
        };
        let modes = |claim: &Value| claim.pointer("/spec/accessModes").cloned().unwrap_or_default();
        if modes(claim) != modes(old) {
            errors.invalid(
                format!("{path}.spec.accessModes"),
                modes(claim),
                "field is immutable",
            );
        }
        let class = |claim: &Value| {
            claim
                .pointer("/spec/storageClassName")
                .cloned()
                .unwrap_or_default()
        };
        if !class(claim).is_null() && !class(old).is_null() && class(claim) != class(old) {
            let path = format!("{path}.spec.storageClassName");
            errors.invalid(path, class(claim), "field is immutable");
        }
    }
}
