//! `AdmissionReview`, version v1.

use serde_json::{Value, json};

use crate::api::Call;
use crate::object::metadata_text;
use crate::status::Failure;
use crate::validation::text;
use crate::webhook::{ADMISSION_KIND as KIND, ADMISSION_VERSION as API_VERSION, About};
use crate::wire::Method;

/// The request of a review, without its uid and its objects, which are in `version`.
pub(super) fn request(call: &Call<'_>, version: &str, operation: &str, object: &Value) -> Value {
    let group = call.resource.id.group.as_ref();
    let kind = |version: &str| match kind_of_subresource(call) {
        Some((group, version, kind)) => json!({"group": group, "version": version, "kind": kind}),
        None => json!({"group": group, "version": version, "kind": call.resource.kind.as_ref()}),
    };
    let resource = |version: &str| json!({"group": group, "version": version, "resource": call.resource.id.plural.as_ref()});
    let requested = &call.version.name;
    let named = if call.target.name.is_empty() {
        metadata_text(object, "name")
    } else {
        &call.target.name
    };
    let options = match operation {
        "CREATE" => "CreateOptions",
        "UPDATE" if call.request.method == Method::Patch => "PatchOptions",
        "UPDATE" => "UpdateOptions",
        _ => "DeleteOptions",
    };
    let mut request = json!({
        "kind": kind(version), "resource": resource(version),
        "requestKind": kind(requested), "requestResource": resource(requested),
        "name": named, "operation": operation, "dryRun": call.dry_run,
        "userInfo": {"username": call.request.user, "groups": groups(&call.request.user)},
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

/// Group, version and kind of what a subresource takes, if that is not the object itself.
pub(super) fn kind_of_subresource(call: &Call<'_>) -> Option<(&'static str, &'static str, &'static str)> {
    match call.target.subresource.as_str() {
        "scale" => Some(("autoscaling", "v1", "Scale")),
        "eviction" => Some(("policy", "v1", "Eviction")),
        "binding" => Some(("", "v1", "Binding")),
        _ => None,
    }
}

/// The groups that authentication gives a user.
fn groups(user: &str) -> Vec<String> {
    let mut groups = match user.strip_prefix("system:serviceaccount:") {
        Some(account) => {
            let namespace = account.split(':').next().unwrap_or_default();
            vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ]
        }
        None if user.starts_with("system:node:") => vec!["system:nodes".to_owned()],
        None => vec!["system:masters".to_owned()],
    };
    groups.push("system:authenticated".to_owned());
    groups
}

/// The review to send.
pub(super) fn review(about: &About, uid: &str) -> Value {
    let mut request = about.request.clone();
    if let Value::Object(members) = &mut request {
        members.insert("object".into(), about.object.clone());
        members.insert("oldObject".into(), Value::clone(&about.old));
        members.insert("uid".into(), uid.into());
    }
    let mut review = json!({"kind": KIND, "apiVersion": API_VERSION});
    if let Value::Object(members) = &mut review {
        members.insert("request".into(), request);
    }
    review
}

/// A refusal in the webhook's words, and with its code, reason and details.
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
    // a refusal is no success, whatever the webhook says
    let code = code.filter(|code| (400..600).contains(code)).unwrap_or(400);
    let details = status.get("details").filter(|details| details.is_object());
    Failure::denied(code, text(status, "reason"), message, details.cloned())
}
