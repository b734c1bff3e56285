//! Deletion protection: a label that keeps a workload from being deleted. The message is what clients match.

use kruise_api::names::DELETE_PROTECTION;
use serde_json::Value;

use crate::json::{present, text};
use crate::{Options, Response};

/// Whether the stored object may be deleted. One that is already being deleted may.
pub(crate) fn response(stored: &Value, options: Options) -> Response {
    let Some(metadata) = present(stored, "metadata").filter(|_| options.deletion_protection) else {
        return Response::ALLOW;
    };
    if present(metadata, "deletionTimestamp").is_some() {
        return Response::ALLOW;
    }
    let replicas = stored.pointer("/spec/replicas").and_then(Value::as_i64);
    let protection = metadata
        .get("labels")
        .map(|labels| text(labels, DELETE_PROTECTION));
    let reason = match (protection, replicas) {
        (Some("Always"), _) => "Always".to_owned(),
        (Some("Cascading"), Some(replicas @ 1..)) => format!("Cascading and replicas {replicas}>0"),
        _ => return Response::ALLOW,
    };
    Response::Deny {
        code: 403,
        message: format!("forbidden by ResourcesProtectionDeletion for {DELETE_PROTECTION}={reason}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn protected_sets_stay() {
        let on = Options {
            deletion_protection: true,
            ..Options::default()
        };
        let stored = |label: &str, replicas: Option<i32>| json!({"metadata": {"labels": {DELETE_PROTECTION: label}}, "spec": {"replicas": replicas}});
        let message = |stored: &Value, options| match response(stored, options) {
            Response::Deny { code: 403, message } => Some(message),
            Response::Deny { code, .. } => panic!("{code}"),
            Response::Allow { .. } => None,
        };
        let always = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always";
        assert_eq!(message(&stored("Always", Some(0)), on).as_deref(), Some(always));
        let cascading = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading \
                         and replicas 1>0";
        assert_eq!(
            message(&stored("Cascading", Some(1)), on).as_deref(),
            Some(cascading)
        );
        assert_eq!(message(&stored("Cascading", Some(0)), on), None);
        assert_eq!(message(&stored("Cascading", None), on), None);
        assert_eq!(message(&stored("always", Some(1)), on), None);
        assert_eq!(message(&stored("Always", Some(1)), Options::default()), None);
        let mut going = stored("Always", Some(1));
        going["metadata"]["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
        assert_eq!(message(&going, on), None);
        assert_eq!(message(&Value::Null, on), None);
    }
}
