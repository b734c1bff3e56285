//! What a pod or a container may do on its node.

use serde_json::Value;

use super::error::Errors;
use super::json::{integer, member, text};

/// The largest id of a user or a group.
const LARGEST_ID: i64 = i32::MAX as i64;

/// The security context of a pod.
pub(super) fn of_pod(errors: &mut Errors, context: &Value, path: &str) {
    ids(errors, context, &["runAsUser", "runAsGroup", "fsGroup"], path);
    seccomp(errors, context, path);
}

/// The security context of a container.
pub(super) fn of_container(errors: &mut Errors, context: &Value, path: &str) {
    ids(errors, context, &["runAsUser", "runAsGroup"], path);
    seccomp(errors, context, path);
    let is = |name: &str, wanted: bool| context.get(name) == Some(&Value::Bool(wanted));
    if is("privileged", true) && is("allowPrivilegeEscalation", false) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.invalid(path, context.clone(), detail);
    }
}

fn ids(errors: &mut Errors, context: &Value, names: &[&str], path: &str) {
    for name in names {
        if let Some(id) = integer(context, name).filter(|id| !(0..=LARGEST_ID).contains(id)) {
            let detail = format!("must be between 0 and {LARGEST_ID}, inclusive");
            errors.invalid(format!("{path}.{name}"), id, &detail);
        }
    }
}

fn seccomp(errors: &mut Errors, context: &Value, path: &str) {
    let Some(profile) = member(context, "seccompProfile") else {
        return;
    };
    let path = format!("{path}.seccompProfile");
    let kind = text(profile, "type");
    let is_named = profile.get("localhostProfile").is_some_and(Value::is_string);
    if kind.is_empty() {
        errors.required(
            format!("{path}.type"),
            "type is required when seccompProfile is set",
        );
    } else if kind == "Localhost" && !is_named {
        let detail = "must be set when seccomp type is Localhost";
        errors.required(format!("{path}.localhostProfile"), detail);
    }
}
