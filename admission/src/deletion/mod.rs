//! Deletion protection: a label that keeps an object from being deleted. The messages are what clients match.

pub mod dependants;
pub mod kinds;

use kruise_api::names::DELETE_PROTECTION;
use serde_json::Value;

use crate::json::{integer, present, text};
use crate::refused::Refused;
use crate::{Options, Outcome, Request, Response};

/// What the label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
    /// As long as it is there.
    Always,
    /// As long as the object has dependants.
    Cascading,
}

/// How a stored object is protected; `None` if it is not, or is being deleted already.
fn protection(stored: &Value) -> Option<Protection> {
    let metadata = present(stored, "metadata")?;
    if present(metadata, "deletionTimestamp").is_some() {
        return None;
    }
    match text(metadata.get("labels")?, DELETE_PROTECTION) {
        "Always" => Some(Protection::Always),
        "Cascading" => Some(Protection::Cascading),
        _ => None,
    }
}

fn replicas(stored: &Value) -> Option<i64> {
    integer(stored.get("spec")?, "replicas")
}

/// How many pods a workload of this kind is to have, and of what that is the number. A DaemonSet is to have as many
/// as there are nodes for them, as its controller found out.
fn wanted(kind: &str, stored: &Value) -> (Option<i64>, &'static str) {
    match kind {
        "DaemonSet" => {
            let status = stored.get("status");
            let nodes = status.and_then(|status| integer(status, "desiredNumberScheduled"));
            (nodes, "nodes")
        }
        _ => (replicas(stored), "replicas"),
    }
}

fn denied(reason: &str) -> Response {
    let message = format!("forbidden by ResourcesProtectionDeletion for {DELETE_PROTECTION}={reason}");
    Response::denied(403, message)
}

/// Whether the stored workload of this kind may be deleted.
pub(crate) fn review(kind: &str, request: &Request, options: Options) -> Outcome {
    match response(kind, &request.old_object, options) {
        Response::Allow { .. } => Response::ALLOW.into(),
        denied @ Response::Deny { .. } => {
            Outcome::Refused(Box::new(Refused::deletion(kind, request)), denied)
        }
    }
}

fn response(kind: &str, stored: &Value, options: Options) -> Response {
    match protection(stored).filter(|_| options.deletion_protection) {
        Some(Protection::Always) => denied("Always"),
        Some(Protection::Cascading) => match wanted(kind, stored) {
            (Some(count @ 1..), what) => denied(&format!("Cascading and {what} {count}>0")),
            _ => Response::ALLOW,
        },
        None => Response::ALLOW,
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
        let message = |stored: &Value, options| match response("CloneSet", stored, options) {
            Response::Deny {
                code: 403,
                reason: None,
                message,
            } => Some(message),
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
