//! StatefulSets.
//!
//! | Field | Rule | Where |
//! |---|---|---|
//! | `metadata.name` | a DNS label | here |
//! | `replicas`, `revisionHistoryLimit`, `ordinals.start` | not negative | here |
//! | `selector` | valid, not empty, matches the template; stays | here |
//! | `template`, `volumeClaimTemplates` | could become pods that always restart, and their claims | here |
//! | `podManagementPolicy`, `serviceName` | known; stay | here, [`changes`] |
//! | `reserveOrdinals` | numbers, or ranges whose ends are in order | here |
//! | `persistentVolumeClaimRetentionPolicy` | known | here |
//! | `updateStrategy`, `scaleStrategy` | can make progress, as the pod management allows it | [`strategy`] |
//! | `template` under `InPlaceOnly` | only what can change in place changes | [`changes`] |
//! | `volumeClaimTemplates` that pods follow | neither come nor go; only their size changes | [`changes`] |
//! | their size, where pods follow it | the storage class expands volumes | [`classes`] |

mod changes;
mod classes;
mod strategy;

use go_compat::IntOrString;
use kube_schema::defaults;
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::Value;

use super::{KindWebhooks, Scope, judged, parts};
use crate::json::{fill, items, made, member, text};
use crate::workload::{self, not_negative};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mstatefulset.kb.io"),
    validating: Some("vstatefulset.kb.io"),
    deletions: true,
    newest: true,
    parts: &[parts::TEMPLATE, parts::CLAIMS],
    defaults: fill_in,
    rules,
    changes: changes::check,
    others: classes::check,
    templates: judged::of_workload,
    advice: strategy::advice,
    ..KindWebhooks::of(&kruise_api::statefulset::KIND)
};

fn fill_in(object: &mut Value, scope: &Scope<'_>) {
    let new_template = scope.complete_template(object, workload::TEMPLATE);
    let Some(spec) = made(object, "spec") else {
        return;
    };
    fill(spec, "podManagementPolicy", "OrderedReady");
    if let Some(update) = made(spec, "updateStrategy") {
        fill(update, "type", "RollingUpdate");
        if text(update, "type") == "RollingUpdate"
            && let Some(rolling) = made(update, "rollingUpdate")
        {
            fill(rolling, "partition", 0);
            fill(rolling, "maxUnavailable", 1);
            fill(rolling, "podUpdatePolicy", "ReCreate");
            fill(rolling, "minReadySeconds", 0);
        }
    }
    // the older version has no place for either; what it keeps for the newer one is not touched
    if scope.version != "v1alpha1" {
        claims(spec, scope);
    }
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    if new_template {
        let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
        claims.into_iter().flatten().for_each(defaults::claim);
    }
}

/// What becomes of claims.
fn claims(spec: &mut Value, scope: &Scope<'_>) {
    if scope.options.claims_deleted
        && let Some(policy) = made(spec, "persistentVolumeClaimRetentionPolicy")
    {
        fill(policy, "whenDeleted", "Retain");
        fill(policy, "whenScaled", "Retain");
    }
    if scope.options.claims_resized
        && let Some(strategy) = made(spec, "volumeClaimUpdateStrategy")
    {
        fill(strategy, "type", "OnDelete");
    }
}

fn rules(errors: &mut Errors, object: &Value, scope: &Scope<'_>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let found = validate::metadata(metadata, "metadata");
    let name = text(metadata, "name");
    if found.iter().all(|error| error.path != "metadata.name")
        && !name.is_empty()
        && let Some(reason) = validate::dns_label(name)
    {
        errors.invalid("metadata.name", name, reason);
    }
    errors.0.extend(found);
    let spec = object.get("spec").unwrap_or(&Value::Null);
    not_negative(errors, spec, "replicas", "spec.replicas");
    not_negative(errors, spec, "revisionHistoryLimit", "spec.revisionHistoryLimit");
    let ordinals = spec.get("ordinals").unwrap_or(&Value::Null);
    not_negative(errors, ordinals, "start", "spec.ordinals.start");
    let management = text(spec, "podManagementPolicy");
    if management.is_empty() {
        errors.required("spec.podManagementPolicy", "");
    }
    errors.one_of(
        "spec.podManagementPolicy",
        management,
        &["OrderedReady", "Parallel"],
    );
    reserved(errors, spec);
    if let Some(policy) = member(spec, "persistentVolumeClaimRetentionPolicy") {
        retention(errors, policy);
    }
    workload::selector(errors, spec, "StatefulSet");
    let templates = items(spec, "volumeClaimTemplates");
    let path = "spec.volumeClaimTemplates";
    errors.0.extend(validate::claims(templates, path));
    let template = spec.get("template").unwrap_or(&Value::Null);
    workload::template(errors, template, templates, "spec.template", scope.options);
    workload::always_running(errors, spec, "StatefulSet");
    strategy::check(errors, spec);
}

/// Numbers, and ranges as `3-5`.
fn reserved(errors: &mut Errors, spec: &Value) {
    for (index, value) in items(spec, "reserveOrdinals").iter().enumerate() {
        let detail = match IntOrString::deserialize(value) {
            Ok(IntOrString::Int(number)) if number < 0 => "must not be negative",
            Ok(IntOrString::String(range)) if !is_range(&range) => "must be a number, or a range such as 3-5",
            _ => continue,
        };
        errors.invalid(format!("spec.reserveOrdinals[{index}]"), value.clone(), detail);
    }
}

fn is_range(text: &str) -> bool {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        digits.then(|| text.parse::<i64>().ok()).flatten()
    };
    let ends = text.split_once('-').map(|(from, to)| (number(from), number(to)));
    matches!(ends, Some((Some(from), Some(to))) if from <= to)
}

fn retention(errors: &mut Errors, policy: &Value) {
    for name in ["whenDeleted", "whenScaled"] {
        let path = format!("spec.persistentVolumeClaimRetentionPolicy.{name}");
        let value = text(policy, name);
        if value.is_empty() {
            errors.required(path, "must be Retain or Delete");
        } else {
            errors.one_of(path, value, &["Retain", "Delete"]);
        }
    }
}

#[cfg(test)]
mod tests;
