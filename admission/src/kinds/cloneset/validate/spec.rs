//! Rules about what a CloneSet runs: replicas, selector, template and claims.

use go_compat::IntOrString;
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::Value;

use crate::json::{items, present};
pub(super) use crate::workload::not_negative;
use crate::{Options, workload};

/// `progressDeadlineSeconds` that means never.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// Everything but the strategies.
pub(super) fn check(errors: &mut Errors, spec: &Value, options: Options) {
    not_negative(errors, spec, "replicas", "spec.replicas");
    not_negative(errors, spec, "minReadySeconds", "spec.minReadySeconds");
    deadline(errors, spec);
    workload::selector(errors, spec, "CloneSet");
    let template = spec.get("template").unwrap_or(&Value::Null);
    let claims = items(spec, "volumeClaimTemplates");
    errors
        .0
        .extend(validate::claims(claims, "spec.volumeClaimTemplates"));
    workload::template(errors, template, claims, "spec.template", options);
    workload::always_running(errors, spec, "CloneSet");
}

fn deadline(errors: &mut Errors, spec: &Value) {
    let path = "spec.progressDeadlineSeconds";
    let ready = spec.get("minReadySeconds").and_then(Value::as_i64).unwrap_or(0);
    match spec.get("progressDeadlineSeconds").and_then(Value::as_i64) {
        None | Some(NO_DEADLINE) => {}
        Some(..0) => not_negative(errors, spec, "progressDeadlineSeconds", path),
        Some(seconds) if seconds <= ready => {
            errors.invalid(path, seconds, "must be greater than minReadySeconds");
        }
        Some(_) => {}
    }
}

/// A count or share that can be read; what cannot is left to decoding.
pub(super) fn int_or_string(object: &Value, name: &str) -> Option<IntOrString> {
    IntOrString::deserialize(present(object, name)?).ok()
}
