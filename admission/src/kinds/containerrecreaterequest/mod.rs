//! ContainerRecreateRequests: which containers of which pod are to be started anew.
//!
//! | Field | Rule |
//! |---|---|
//! | `podName` | there |
//! | `containers` | at least one, each once; what the system fills in is not given |
//! | `strategy` | known; times not negative |
//! | `activeDeadlineSeconds` | at least 3 |
//! | a new one | its pod runs on a node, and has these containers: [`pod`], from which the rest is filled in |
//! | UPDATE | neither the specification nor what says where it is carried out changes |

mod pod;

use std::collections::BTreeSet;

use kruise_api::names::containerrecreaterequest::{ACTIVE, NODE_NAME, POD_UID, UNREADY_ACQUIRED};
use kube_schema::validate::{Errors, Kind};
use serde_json::Value;

use super::{KindWebhooks, Scope};
use crate::json::{fill, items, made, present, text};
use crate::lookup::Reader;
use crate::workload::not_negative;

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mcontainerrecreaterequest.kb.io"),
    codes: (400, 403),
    gate: |options| (!options.daemon).then_some("KruiseDaemon"),
    defaults,
    rules,
    changes,
    others,
    copies,
    ..KindWebhooks::of(&kruise_api::containerrecreaterequest::KIND)
};

const SHORTEST_DEADLINE: i64 = 3;

fn defaults(object: &mut Value, scope: &Scope<'_>) {
    if scope.old.is_some() {
        return;
    }
    if let Some(labels) = made(object, "metadata").and_then(|metadata| made(metadata, "labels"))
        && let Some(labels) = labels.as_object_mut()
    {
        labels.insert(ACTIVE.to_owned(), "true".into());
    }
    if let Some(strategy) = made(object, "spec").and_then(|spec| made(spec, "strategy")) {
        fill(strategy, "failurePolicy", "Fail");
    }
}

/// A request cannot change, so that only a new one is judged.
fn rules(errors: &mut Errors, object: &Value, scope: &Scope<'_>) {
    if scope.old.is_some() {
        return;
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if text(spec, "podName").is_empty() {
        errors.required("spec.podName", "");
    }
    containers(errors, items(spec, "containers"));
    let strategy = spec.get("strategy").unwrap_or(&Value::Null);
    let path = "spec.strategy";
    errors.one_of(
        format!("{path}.failurePolicy"),
        text(strategy, "failurePolicy"),
        &["Fail", "Ignore"],
    );
    for name in [
        "terminationGracePeriodSeconds",
        "unreadyGracePeriodSeconds",
        "minStartedSeconds",
    ] {
        not_negative(errors, strategy, name, format!("{path}.{name}"));
    }
    not_negative(
        errors,
        spec,
        "ttlSecondsAfterFinished",
        "spec.ttlSecondsAfterFinished",
    );
    if let Some(seconds) = spec.get("activeDeadlineSeconds").and_then(Value::as_i64)
        && seconds < SHORTEST_DEADLINE
    {
        errors.invalid("spec.activeDeadlineSeconds", seconds, "must be at least 3");
    }
}

/// What each container gets from the pod.
const COPIED: [&str; 3] = ["preStop", "ports", "statusContext"];

fn others(errors: &mut Errors, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    if scope.old.is_none() {
        pod::check(errors, object, scope, reader);
    }
}

fn copies(object: &mut Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    match scope.old {
        None => pod::copy(object, scope, reader),
        Some(old) => {
            keep(object, old);
            keep_acquired(object, old, scope);
        }
    }
}

fn containers(errors: &mut Errors, containers: &[Value]) {
    if containers.is_empty() {
        errors.required("spec.containers", "a container is needed");
    }
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("spec.containers[{index}]");
        let name = text(container, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if !seen.insert(name) {
            errors.add(format!("{path}.name"), Kind::Duplicate, name, "");
        }
        for name in COPIED {
            let given =
                present(container, name).filter(|value| value.as_array().is_none_or(|list| !list.is_empty()));
            if given.is_some() {
                errors.forbidden(format!("{path}.{name}"), "is taken from the pod");
            }
        }
    }
}

/// Puts back what was copied from the pod and is not in the new object: a manifest that is applied again has a list of
/// containers without it.
fn keep(object: &mut Value, old: &Value) {
    let old = old.get("spec").unwrap_or(&Value::Null);
    let containers = object.pointer_mut("/spec/containers");
    let containers = containers.and_then(Value::as_array_mut);
    for one in containers.into_iter().flatten() {
        let is_it = |other: &&Value| text(other, "name") == text(one, "name");
        let Some(Value::Object(stored)) = items(old, "containers").iter().find(is_it) else {
            continue;
        };
        let Some(one) = one.as_object_mut() else { continue };
        for (name, value) in stored.iter().filter(|(name, _)| COPIED.contains(&name.as_str())) {
            one.entry(name).or_insert_with(|| value.clone());
        }
    }
}

/// Puts back the annotation that is a condition of the status in `v1beta1`: a client of `v1alpha1` that replaces
/// the object as it once read or wrote it does not send it.
fn keep_acquired(object: &mut Value, old: &Value, scope: &Scope<'_>) {
    if scope.version != "v1alpha1" {
        return;
    }
    let acquired = annotation(old, UNREADY_ACQUIRED);
    if acquired.is_empty() || !annotation(object, UNREADY_ACQUIRED).is_empty() {
        return;
    }
    let annotations = made(object, "metadata").and_then(|metadata| made(metadata, "annotations"));
    if let Some(Value::Object(annotations)) = annotations {
        annotations.insert(UNREADY_ACQUIRED.to_owned(), acquired.into());
    }
}

/// An annotation; empty if there is none.
fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    let annotations = object
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"));
    annotations.map_or("", |annotations| text(annotations, key))
}

fn changes(errors: &mut Errors, new: &Value, old: &Value, scope: &Scope<'_>) {
    let mut kept = new.clone();
    keep(&mut kept, old);
    if without_empty(kept.get("spec")) != without_empty(old.get("spec")) {
        errors.forbidden("spec", "spec of ContainerRecreateRequest is immutable");
    }
    let label = |object: &Value, key: &str| {
        let value = object
            .get("metadata")
            .and_then(|metadata| metadata.get("labels")?.get(key));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    for key in [POD_UID, NODE_NAME] {
        if label(new, key) != label(old, key) {
            errors.forbidden(format!("metadata.labels[{key}]"), "is immutable");
        }
    }
    let key = UNREADY_ACQUIRED;
    let (acquired, sent) = (annotation(old, key), annotation(new, key));
    if scope.version == "v1alpha1" && !acquired.is_empty() && !sent.is_empty() && sent != acquired {
        errors.forbidden(format!("metadata.annotations[{key}]"), "is immutable");
    }
}

/// What a specification says: nothing is the same as an empty value.
fn without_empty(value: Option<&Value>) -> Value {
    match value {
        Some(Value::Object(members)) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), without_empty(Some(value))));
            Value::Object(members.filter(|(_, value)| !is_empty(value)).collect())
        }
        Some(Value::Array(list)) => list.iter().map(|value| without_empty(Some(value))).collect(),
        Some(value) => value.clone(),
        None => Value::Null,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Case, case};
    use super::*;
    use crate::Options;

    const CASE: Case = case("ContainerRecreateRequest", good);

    fn good() -> Value {
        json!({"podName": "web-0", "containers": [{"name": "web"}, {"name": "cache"}], "activeDeadlineSeconds": 3})
    }

    #[test]
    fn a_new_request_is_active_and_ends_at_a_failure() {
        for version in ["v1alpha1", "v1beta1"] {
            let mut request = CASE.object(version, &good());
            request["metadata"]["labels"] = json!({"mine": "stays", ACTIVE: "false"});
            let found = CASE.mutated_object("CREATE", &request, &Value::Null);
            assert_eq!(found["spec"]["strategy"], json!({"failurePolicy": "Fail"}));
            assert_eq!(
                found["metadata"]["labels"],
                json!({"mine": "stays", ACTIVE: "true", NODE_NAME: "n", POD_UID: "u"})
            );
        }
    }

    #[test]
    fn a_request_that_ended_does_not_become_active_again() {
        let old = CASE.object("v1beta1", &good());
        let mut new = old.clone();
        new["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(CASE.mutated_object("UPDATE", &new, &old), new);
    }

    #[test]
    #[rustfmt::skip]
    fn every_broken_rule_names_its_field() {
        CASE.each_is_refused(&[
            ("podName", json!(""), "spec.podName: Required"),
            ("containers", json!([]), "spec.containers: Required"),
            ("containers.1.name", json!("web"), "spec.containers[1].name: Duplicate value: \"web\""),
            ("containers.0.name", Value::Null, "spec.containers[0].name: Required"),
            ("containers.0.preStop", json!({"exec": {}}), "spec.containers[0].preStop: Forbidden"),
            ("containers.0.ports", json!([{"containerPort": 1}]), "spec.containers[0].ports: Forbidden"),
            ("containers.0.statusContext", json!({"restartCount": 1}), "spec.containers[0].statusContext: Forbidden"),
            ("strategy", json!({"failurePolicy": "Retry"}), "spec.strategy.failurePolicy: Unsupported"),
            ("strategy", json!({"terminationGracePeriodSeconds": -1}), "spec.strategy.terminationGracePeriodSeconds: Invalid"),
            ("strategy", json!({"unreadyGracePeriodSeconds": -1}), "spec.strategy.unreadyGracePeriodSeconds: Invalid"),
            ("strategy", json!({"minStartedSeconds": -1}), "spec.strategy.minStartedSeconds: Invalid"),
            ("ttlSecondsAfterFinished", json!(-1), "spec.ttlSecondsAfterFinished: Invalid"),
            ("activeDeadlineSeconds", json!(2), "spec.activeDeadlineSeconds: Invalid value: 2"),
        ]);
    }

    #[test]
    fn neither_the_specification_nor_its_place_changes() {
        let mut old = CASE.object("v1alpha1", &good());
        old["metadata"]["labels"] = json!({POD_UID: "u", NODE_NAME: "n", ACTIVE: "true"});
        old["metadata"]["annotations"] = json!({UNREADY_ACQUIRED: "2024-01-01T00:00:00Z"});
        let with = |edit: &dyn Fn(&mut Value)| {
            let mut new = old.clone();
            edit(&mut new);
            CASE.refusal("UPDATE", &new, &old)
        };
        let (code, message) = with(&|new| new["spec"]["podName"] = json!("web-1")).unwrap();
        assert!(
            code == 403 && message.contains("spec of ContainerRecreateRequest is immutable"),
            "{message}"
        );
        for key in [POD_UID, NODE_NAME] {
            let (_, message) = with(&|new| new["metadata"]["labels"][key] = json!("other")).unwrap();
            assert!(
                message.contains(&format!("metadata.labels[{key}]: Forbidden")),
                "{message}"
            );
        }
        let (_, message) =
            with(&|new| new["metadata"]["annotations"][UNREADY_ACQUIRED] = json!("later")).unwrap();
        assert!(message.contains(UNREADY_ACQUIRED), "{message}");
        assert_eq!(with(&|new| new["metadata"]["labels"][ACTIVE] = json!("")), None);
        assert_eq!(
            with(&|new| new["spec"]["strategy"] = json!({"orderedRecreate": false})),
            None
        );
    }

    #[test]
    fn a_client_that_does_not_send_the_derived_annotation_is_accepted_and_the_annotation_stays() {
        let mut old = CASE.object("v1alpha1", &good());
        old["metadata"]["annotations"] = json!({UNREADY_ACQUIRED: "2024-01-01T00:00:00Z", "mine": "a"});
        for annotations in [Value::Null, json!({"mine": "b"}), json!({UNREADY_ACQUIRED: ""})] {
            let mut new = old.clone();
            new["metadata"]["annotations"] = annotations.clone();
            assert_eq!(CASE.refusal("UPDATE", &new, &old), None, "{annotations}");
            let stored = CASE.mutated_object("UPDATE", &new, &old);
            assert_eq!(
                stored["metadata"]["annotations"][UNREADY_ACQUIRED],
                "2024-01-01T00:00:00Z"
            );
            assert_eq!(stored["metadata"]["annotations"]["mine"], annotations["mine"]);
        }
        let mut newer = CASE.object("v1beta1", &good());
        newer["metadata"]["annotations"] = old["metadata"]["annotations"].clone();
        let mut without = newer.clone();
        without["metadata"]["annotations"] = Value::Null;
        assert_eq!(CASE.mutated_object("UPDATE", &without, &newer), without);
    }

    #[test]
    fn without_the_daemon_none_is_taken() {
        let options = Options {
            daemon: false,
            ..Options::DEFAULT
        };
        let refused = CASE
            .with(options)
            .refusal("CREATE", &CASE.object("v1beta1", &good()), &Value::Null);
        assert_eq!(
            refused,
            Some((403, "feature-gate KruiseDaemon is not enabled".to_owned()))
        );
    }
}
