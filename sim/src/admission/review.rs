//! `AdmissionReview`, version v1.

use serde_json::{Value, json};

use crate::api::Call;
use crate::entropy::Entropy;
use crate::object::metadata_text;
use crate::status::Failure;
use crate::validation::text;

/// The request of a review, without its uid: the objects are in `version`.
pub(super) fn request(call: &Call<'_>, version: &str, operation: &str, object: &Value, old: &Value) -> Value {
    let group = call.resource.id.group.as_ref();
    let kind =
        |version: &str| json!({"group": group, "version": version, "kind": call.resource.kind.as_ref()});
    let resource = |version: &str| json!({"group": group, "version": version, "resource": call.resource.id.plural.as_ref()});
    let requested = &call.version.name;
    let named = if call.target.name.is_empty() {
        metadata_text(object, "name")
    } else {
        &call.target.name
    };
    let options = match operation {
        "CREATE" => "CreateOptions",
        "UPDATE" => "UpdateOptions",
        _ => "DeleteOptions",
    };
    let mut request = json!({
        "kind": kind(version), "resource": resource(version),
        "requestKind": kind(requested), "requestResource": resource(requested),
        "name": named, "operation": operation, "object": object, "oldObject": old, "dryRun": call.dry_run,
        "userInfo": {"username": call.request.user, "groups": ["system:masters", "system:authenticated"]},
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
    });
    if let Value::Object(members) = &mut request {
        if !call.target.namespace.is_empty() {
            members.insert("namespace".into(), call.target.namespace.as_str().into());
        }
        if !call.target.subresource.is_empty() {
            members.insert("subResource".into(), call.target.subresource.as_str().into());
            members.insert(
                "requestSubResource".into(),
                call.target.subresource.as_str().into(),
            );
        }
    }
    request
}

/// The review to send.
pub(super) fn review(call: &Call<'_>, mut request: Value) -> Result<Value, Failure> {
    let uid = Entropy::new(call.seed.wrapping_add(call.answers.next()?)).uid();
    if let Value::Object(members) = &mut request {
        members.insert("uid".into(), uid.into());
    }
    Ok(json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}))
}

/// A refusal in the webhook's words.
pub(super) fn denied(webhook: &str, response: &Value) -> Failure {
    let status = response.get("status").unwrap_or(&Value::Null);
    let by = format!("admission webhook {webhook:?} denied the request");
    let message = match (text(status, "message"), text(status, "reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = status
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| *code >= 400).unwrap_or(403);
    let mut reason = text(status, "reason");
    if reason.is_empty() && code == 403 {
        reason = "Forbidden";
    }
    Failure::denied(code, reason, message)
}
