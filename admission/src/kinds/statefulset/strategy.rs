//! How pods are updated and added: known words, and limits under which something can happen.

use go_compat::{IntOrString, Rounding};
use kruise_api::names::persistentpodstate::{PREFERRED, REQUIRED};
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::Value;

use crate::json::{items, member, present, text};
use crate::kinds::Scope;
use crate::kinds::advice::{changed_claims, empty_hooks, large_partition, long_name};
use crate::kinds::cloneset::strategy::priority;
use crate::workload::{grace_period, not_negative};

use super::changes::claims_follow;

const UPDATE: &str = "spec.updateStrategy";
const ROLLING: &str = "spec.updateStrategy.rollingUpdate";
const MOST_READY_SECONDS: i64 = 300;

pub(super) fn check(errors: &mut Errors, spec: &Value) {
    let ordered = text(spec, "podManagementPolicy") != "Parallel";
    if let Some(scale) = member(spec, "scaleStrategy") {
        unavailable(errors, scale, "spec.scaleStrategy", ordered);
    }
    let update = spec.get("updateStrategy").unwrap_or(&Value::Null);
    let rolling = present(update, "rollingUpdate");
    match text(update, "type") {
        "" => errors.required(format!("{UPDATE}.type"), ""),
        "OnDelete" => {
            if rolling.is_some() {
                let detail = "only allowed for updateStrategy RollingUpdate";
                errors.invalid(ROLLING, rolling.cloned().unwrap_or_default(), detail);
            }
        }
        other => errors.one_of(format!("{UPDATE}.type"), other, &["RollingUpdate", "OnDelete"]),
    }
    if let Some(rolling) = rolling.filter(|_| text(update, "type") == "RollingUpdate") {
        self::rolling(errors, spec, rolling, ordered);
    }
}

/// What OpenKruise accepts, and an author hardly means.
pub(super) fn advice(object: &Value, scope: &Scope<'_>) -> Vec<String> {
    let Some(spec) = member(object, "spec") else {
        return Vec::new();
    };
    let partition = spec.pointer("/updateStrategy/rollingUpdate/partition");
    let mut texts = empty_hooks(spec);
    texts.extend(large_partition(spec, partition, ROLLING));
    texts.extend(unknown_claim_strategy(spec));
    texts.extend(without_gate(spec, scope));
    texts.extend(long_name(object));
    if !claims_follow(object, scope) {
        let why = if scope.options.claims_resized {
            "spec.volumeClaimUpdateStrategy.type is not OnPodRollingUpdate"
        } else {
            "the feature gate StatefulSetAutoResizePVCGate is off"
        };
        texts.extend(changed_claims(object, scope, why));
    }
    texts.extend(topology_keys(object));
    texts
}

/// Warns of keys that no node can have, in the annotations that ask for a PersistentPodState. As in OpenKruise,
/// blanks around a comma belong to the keys.
fn topology_keys(object: &Value) -> Vec<String> {
    let annotations = object.pointer("/metadata/annotations").unwrap_or(&Value::Null);
    let mut texts = Vec::new();
    for name in [PREFERRED, REQUIRED] {
        let keys = text(annotations, name);
        let keys = keys.split(',').filter(|_| !keys.is_empty());
        for key in keys.filter(|key| validate::qualified_name(key).is_some()) {
            texts.push(format!(
                "metadata.annotations[{name}]: {key:?} is not the key of a label, so no node has it"
            ));
        }
    }
    texts
}

/// OpenKruise accepts any word here.
fn unknown_claim_strategy(spec: &Value) -> Option<String> {
    let strategy = text(member(spec, "volumeClaimUpdateStrategy")?, "type");
    let is_known = ["", "OnDelete", "OnPodRollingUpdate"].contains(&strategy);
    (!is_known).then(|| format!("spec.volumeClaimUpdateStrategy.type: {strategy} is read as OnDelete"))
}

/// What has no effect because its feature gate is off.
fn without_gate(spec: &Value, scope: &Scope<'_>) -> Vec<String> {
    let is = |path: &str, value: &str| spec.pointer(path).and_then(Value::as_str) == Some(value);
    let retention = "/persistentVolumeClaimRetentionPolicy";
    let deletes = |when: &str| is(&format!("{retention}/{when}"), "Delete");
    let start = spec.pointer("/ordinals/start").and_then(Value::as_i64);
    let options = scope.options;
    let idle = [
        (
            options.claims_resized || !is("/volumeClaimUpdateStrategy/type", "OnPodRollingUpdate"),
            "spec.volumeClaimUpdateStrategy: claims are not resized",
            "StatefulSetAutoResizePVCGate",
        ),
        (
            options.claims_deleted || !(deletes("whenDeleted") || deletes("whenScaled")),
            "spec.persistentVolumeClaimRetentionPolicy: claims are not deleted",
            "StatefulSetAutoDeletePVC",
        ),
        (
            options.start_ordinal || start.is_none_or(|start| start == 0),
            "spec.ordinals.start: pods are numbered from 0",
            "StatefulSetStartOrdinal",
        ),
    ];
    let idle = idle.into_iter().filter(|(works, ..)| !works);
    idle.map(|(_, effect, gate)| format!("{effect} while the feature gate {gate} is off"))
        .collect()
}

fn rolling(errors: &mut Errors, spec: &Value, rolling: &Value, ordered: bool) {
    not_negative(errors, rolling, "partition", format!("{ROLLING}.partition"));
    let path = format!("{ROLLING}.minReadySeconds");
    not_negative(errors, rolling, "minReadySeconds", &path);
    if let Some(seconds) = rolling.get("minReadySeconds").and_then(Value::as_i64)
        && seconds > MOST_READY_SECONDS
    {
        errors.invalid(path, seconds, "must not be greater than 300");
    }
    if present(rolling, "maxUnavailable").is_none() {
        errors.required(format!("{ROLLING}.maxUnavailable"), "");
    }
    unavailable(errors, rolling, ROLLING, ordered);
    grace_period(errors, rolling, ROLLING);
    policy(errors, spec, text(rolling, "podUpdatePolicy"));
    let path = format!("{ROLLING}.unorderedUpdate");
    if let Some(unordered) = present(rolling, "unorderedUpdate") {
        if ordered {
            errors.forbidden(&path, "only works with podManagementPolicy Parallel");
        }
        priority(errors, unordered, &format!("{path}.priorityStrategy"));
    }
}

fn policy(errors: &mut Errors, spec: &Value, policy: &str) {
    let path = format!("{ROLLING}.podUpdatePolicy");
    if policy.is_empty() {
        return errors.required(path, "");
    }
    errors.one_of(path, policy, &["ReCreate", "InPlaceIfPossible", "InPlaceOnly"]);
    if !["InPlaceIfPossible", "InPlaceOnly"].contains(&policy) {
        return;
    }
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    let gates = items(pod, "readinessGates");
    if !gates
        .iter()
        .any(|gate| text(gate, "conditionType") == "InPlaceUpdateReady")
    {
        let value = pod.get("readinessGates").cloned().unwrap_or_default();
        let detail = "must have InPlaceUpdateReady, as podUpdatePolicy is in place";
        errors.invalid("spec.template.spec.readinessGates", value, detail);
    }
}

/// A count that lets something happen. One pod after the other leaves no choice but one.
fn unavailable(errors: &mut Errors, strategy: &Value, path: &str, ordered: bool) {
    let Some(value) = present(strategy, "maxUnavailable") else {
        return;
    };
    let path = format!("{path}.maxUnavailable");
    let Ok(read) = IntOrString::deserialize(value) else {
        return;
    };
    match read.scaled_a(100, Rounding::Up) {
        Err(error) => errors.invalid(&path, value.clone(), &error.to_string()),
        Ok(count) if count < 1 => errors.invalid(&path, value.clone(), "should not be less than 1"),
        Ok(_) => {}
    }
    if ordered && read != IntOrString::Int(1) {
        let detail = "can only work with Parallel PodManagementPolicyType";
        errors.invalid(path, value.clone(), detail);
    }
}
