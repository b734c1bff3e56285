//! UnitedDeployments: one template, and subsets that share its replicas.
//!
//! | Field | Rule | Where |
//! |---|---|---|
//! | `metadata`, `replicas` | well formed; not negative | here |
//! | `selector` | there, well formed, not empty | here |
//! | `template` | exactly one, which could become what it says | [`templates`] |
//! | `topology.subsets` | named; on nodes a server knows; numbers that add up | [`topology`] |
//! | `topology.scheduleStrategy` | `Adaptive` decides itself; pods are reserved only where they can be | [`topology`] |
//! | `updateStrategy` | `Manual`; partitions of subsets that are there | here |
//! | UPDATE | where subsets are stays, and what a StatefulSet cannot change | here, [`templates`] |
//! | DELETE | deletion protection | the table |

mod templates;
mod topology;

use go_compat::json::without_empty;
use kruise_api::meta::LabelSelector;
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{KindWebhooks, Scope, judged, parts};
use crate::json::{fill, items, made, member, present, text};
use crate::workload;

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("muniteddeployment.kb.io"),
    validating: Some("vuniteddeployment.kb.io"),
    deletions: true,
    parts: &[
        parts::pod_template(templates::OF_PODS[0]),
        parts::pod_template(templates::OF_PODS[1]),
        parts::pod_template(templates::OF_PODS[2]),
        parts::pod_template(templates::OF_PODS[3]),
    ],
    defaults,
    rules,
    changes,
    templates: templates::of_pods,
    ..KindWebhooks::of(&kruise_api::uniteddeployment::KIND)
};

fn defaults(object: &mut Value, scope: &Scope<'_>) {
    templates::complete(object, scope);
    let Some(spec) = made(object, "spec") else {
        return;
    };
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = made(spec, "updateStrategy") {
        fill(strategy, "type", "Manual");
        if text(strategy, "type") == "Manual" {
            fill(strategy, "manualUpdate", Map::new());
        }
    }
    topology::defaults(spec);
}

fn rules(errors: &mut Errors, object: &Value, scope: &Scope<'_>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    errors.0.extend(validate::metadata(metadata, "metadata"));
    let spec = object.get("spec").unwrap_or(&Value::Null);
    workload::not_negative(errors, spec, "replicas", "spec.replicas");
    let selector = selector(errors, spec);
    templates::check(errors, spec, selector.as_ref(), scope.options);
    topology::check(errors, spec);
    updates(errors, spec);
}

/// The selector, if it is good.
fn selector(errors: &mut Errors, spec: &Value) -> Option<LabelSelector> {
    let path = "spec.selector";
    let Some(value) = present(spec, "selector") else {
        errors.required(path, "");
        return None;
    };
    let found = validate::selector(value, path);
    let read = LabelSelector::deserialize(value)
        .ok()
        .filter(|_| found.is_empty());
    errors.0.extend(found);
    if read.as_ref().is_some_and(LabelSelector::is_empty) {
        errors.invalid(
            path,
            value.clone(),
            "empty selector is not valid for UnitedDeployment",
        );
        return None;
    }
    read
}

fn updates(errors: &mut Errors, spec: &Value) {
    let path = "spec.updateStrategy";
    let Some(strategy) = member(spec, "updateStrategy") else {
        return;
    };
    errors.one_of(format!("{path}.type"), text(strategy, "type"), &["Manual"]);
    let subsets = topology::subsets(spec);
    let partitions = strategy
        .pointer("/manualUpdate/partitions")
        .and_then(Value::as_object);
    for name in partitions.into_iter().flatten().map(|(name, _)| name) {
        if !subsets.iter().any(|subset| text(subset, "name") == name) {
            let path = format!("{path}.manualUpdate.partitions[{name}]");
            errors.invalid(path, name.as_str(), "there is no subset of this name");
        }
    }
}

fn changes(errors: &mut Errors, new: &Value, old: &Value, _: &Scope<'_>) {
    let null = Value::Null;
    let (new, old) = (new.get("spec").unwrap_or(&null), old.get("spec").unwrap_or(&null));
    for (index, subset) in topology::subsets(new).iter().enumerate() {
        let name = text(subset, "name");
        // a flaw of old objects: several of one name
        let before = || {
            topology::subsets(old)
                .iter()
                .filter(|one| text(one, "name") == name)
        };
        for field in ["nodeSelectorTerm", "tolerations"] {
            let stays = before().any(|one| alike(subset.get(field), one.get(field)));
            if before().next().is_some() && !stays {
                let path = format!("spec.topology.subsets[{index}].{field}");
                errors.forbidden(path, "may not change while the subset is there");
            }
        }
    }
    templates::changes(errors, new, old);
}

/// Are they the same to a Go client, to whom what is empty is absent?
fn alike(one: Option<&Value>, other: Option<&Value>) -> bool {
    one.and_then(without_empty) == other.and_then(without_empty)
}

#[cfg(test)]
mod tests;
