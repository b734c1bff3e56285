//! What a CloneSet must satisfy to be stored, and to be deleted.
//!
//! | Fields | Rule | Where |
//! |---|---|---|
//! | `metadata` | name, labels and annotations are well formed | here |
//! | `spec.replicas`, `minReadySeconds`, `progressDeadlineSeconds` | ranges | [`spec`] |
//! | `spec.selector` | valid, not empty, matches the template | [`spec`] |
//! | `spec.template`, `volumeClaimTemplates` | could become pods that always restart | [`spec`] |
//! | `spec.updateStrategy` | known values, ranges; an update can make progress | [`strategy`] |
//! | `spec.scaleStrategy.podsToDelete` | distinct pods of this set | [`pods_to_delete`] |
//! | UPDATE | the selector stays; `InPlaceOnly` changes only what can change in place | here |
//! | DELETE | deletion protection | [`crate::deletion`] |
//!
//! On UPDATE a rule that the stored object breaks in the same way is not held against the new one: rules get
//! stricter over time, and a CloneSet accepted by an older version must still be scaled and its finalizers removed.

pub(super) mod pods_to_delete;
mod spec;
pub(crate) mod strategy;

use kube_schema::validate::{self, Errors};
use serde_json::Value;

use super::version::Version;
use crate::json::member;
use crate::kinds::Scope;
use crate::kinds::advice::{changed_claims, empty_hooks, large_partition, long_name};
use crate::workload;

/// Everything that needs no other object.
pub(super) fn rules(errors: &mut Errors, object: &Value, scope: &Scope<'_>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    errors.0.extend(validate::metadata(metadata, "metadata"));
    if let Some(spec) = member(object, "spec") {
        spec::check(errors, spec, scope.options);
        strategy::check(errors, spec, Version::of(scope));
        pods_to_delete::distinct(errors, spec);
    }
}

/// What OpenKruise accepts, and an author hardly means.
pub(super) fn advice(object: &Value, scope: &Scope<'_>) -> Vec<String> {
    let Some(spec) = member(object, "spec") else {
        return Vec::new();
    };
    let version = Version::of(scope);
    let partition = version
        .strategy(spec)
        .and_then(|strategy| strategy.get("partition"));
    let mut texts = empty_hooks(spec);
    texts.extend(large_partition(spec, partition, version.strategy_path()));
    texts.extend(strategy::frozen(spec));
    if !scope.options.short_hash {
        texts.extend(long_name(object));
    }
    if !scope.options.claims_recreate {
        let gate = "RecreatePodWhenChangeVCTInCloneSetGate";
        texts.extend(changed_claims(
            object,
            scope,
            &format!("the feature gate {gate} is off"),
        ));
    }
    texts
}

/// What an UPDATE must leave alone.
pub(super) fn changes(errors: &mut Errors, new: &Value, old: &Value, scope: &Scope<'_>) {
    let (Some(new), Some(old)) = (member(new, "spec"), member(old, "spec")) else {
        return;
    };
    workload::same_selector(errors, new, old);
    let version = Version::of(scope);
    if version.policy(new) == "InPlaceOnly" {
        // OpenKruise refuses resources in `v1alpha1`, with the gate too.
        let resizes = scope.options.vertical_scaling && version == Version::V1beta1;
        workload::changes_in_place(errors, new, old, scope.options, resizes);
    }
}

#[cfg(test)]
mod tests;
