//! BroadcastJobs: nothing of them is immutable, and their pods come to an end.
//!
//! | Field | Rule |
//! |---|---|
//! | `metadata.name` | letters, digits and dashes |
//! | `parallelism` | a count or percentage, not negative |
//! | `completionPolicy` | known; `Never` has neither deadline nor time to live |
//! | `failurePolicy.type` | known |
//! | `template` | could become pods that restart never or on failure; the labels that mark them are not preset |

use go_compat::{IntOrString, Rounding};
use kruise_api::names;
use kube_schema::validate::{Errors, FieldError};
use serde::Deserialize as _;
use serde_json::Value;

use super::{KindWebhooks, Scope, judged, parts};
use crate::json::{fill, made, present, text};
use crate::workload;

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mbroadcastjob.kb.io"),
    validating: Some("vbroadcastjob.kb.io"),
    parts: &[parts::TEMPLATE],
    defaults,
    rules,
    advice,
    templates: judged::of_workload,
    ..KindWebhooks::of(&kruise_api::broadcastjob::KIND)
};

/// Labels that mark the pods of a job; templates must not have them.
const OWN_LABELS: [&str; 2] = [names::broadcastjob::NAME, names::broadcastjob::UID];

fn defaults(object: &mut Value, scope: &Scope<'_>) {
    scope.complete_template(object, workload::TEMPLATE);
    let Some(spec) = made(object, "spec") else {
        return;
    };
    if let Some(policy) = made(spec, "completionPolicy") {
        fill(policy, "type", "Always");
    }
    fill(spec, "parallelism", i32::MAX);
    if let Some(policy) = made(spec, "failurePolicy") {
        fill(policy, "type", "FailFast");
    }
}

fn rules(errors: &mut Errors, object: &Value, scope: &Scope<'_>) {
    workload::plain_metadata(errors, object);
    let spec = object.get("spec").unwrap_or(&Value::Null);
    own_rules(errors, spec);
    let template = spec.get("template").unwrap_or(&Value::Null);
    workload::template(errors, template, &[], "spec.template", scope.options);
    ends(errors, template);
}

/// Why a job of this specification would be refused, whose template could become pods.
pub(super) fn refused(spec: &Value, scope: &Scope<'_>) -> Vec<FieldError> {
    let mut job = serde_json::json!({"spec": spec});
    defaults(&mut job, scope);
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let mut errors = Errors::default();
    own_rules(&mut errors, spec);
    ends(&mut errors, spec.get("template").unwrap_or(&Value::Null));
    errors.0
}

/// The rules of all members but the template.
fn own_rules(errors: &mut Errors, spec: &Value) {
    parallelism(errors, spec);
    let policy = spec.get("completionPolicy").unwrap_or(&Value::Null);
    let kind = text(policy, "type");
    errors.one_of("spec.completionPolicy.type", kind, &["Always", "Never"]);
    if kind == "Never" {
        for name in ["activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
            if let Some(value) = present(policy, name) {
                let detail = "can only be set with type Always";
                errors.invalid(format!("spec.completionPolicy.{name}"), value.clone(), detail);
            }
        }
    }
    let policy = spec.get("failurePolicy").unwrap_or(&Value::Null);
    let policies = &["Continue", "FailFast", "Pause"];
    errors.one_of("spec.failurePolicy.type", text(policy, "type"), policies);
}

/// Without a limit the first restart is a failure, whatever the job does then.
fn advice(object: &Value, _: &Scope<'_>) -> Vec<String> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let policy = spec.get("failurePolicy").unwrap_or(&Value::Null);
    let restarts = spec.pointer("/template/spec/restartPolicy") == Some(&Value::from("OnFailure"));
    let limit = present(policy, "restartLimit")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    if !restarts || limit > 0 {
        return Vec::new();
    }
    let consequence = match text(policy, "type") {
        "Pause" => "pauses the job",
        "Continue" => "the job does not wait for the pod any more",
        _ => "ends the job",
    };
    vec![format!(
        "spec.failurePolicy.restartLimit: without a limit the first restart of a pod counts as its failure, and {consequence}"
    )]
}

fn parallelism(errors: &mut Errors, spec: &Value) {
    let Some(value) = present(spec, "parallelism") else {
        return;
    };
    let scaled = IntOrString::deserialize(value).map(|value| value.scaled_a(100, Rounding::Up));
    if !matches!(scaled, Ok(Ok(0..))) {
        let detail = "must be a number or a percentage, not below 0";
        errors.invalid("spec.parallelism", value.clone(), detail);
    }
}

/// Pods must be able to end, and be marked by the controller alone.
fn ends(errors: &mut Errors, template: &Value) {
    let policy = template.pointer("/spec/restartPolicy").unwrap_or(&Value::Null);
    if !["Never", "OnFailure"].contains(&policy.as_str().unwrap_or_default()) {
        let detail = "pod restartPolicy can only be Never or OnFailure";
        errors.invalid("spec.template.spec.restartPolicy", policy.clone(), detail);
    }
    let labels = template.pointer("/metadata/labels").unwrap_or(&Value::Null);
    if OWN_LABELS.iter().any(|name| !text(labels, name).is_empty()) {
        let detail = format!("{} are set by the controller", OWN_LABELS.join(" and "));
        errors.invalid("spec.template.metadata.labels", labels.clone(), &detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Case, case};
    use super::*;

    const CASE: Case = case("BroadcastJob", good);

    fn good() -> Value {
        json!({
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "check", "image": "check:1"}],
            }},
            "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 60},
        })
    }

    #[test]
    fn policies_parallelism_and_the_template_are_filled_in() {
        for version in ["v1alpha1", "v1beta1"] {
            let mut bare = good();
            bare.as_object_mut().unwrap().remove("completionPolicy");
            let found = CASE.mutated(version, &bare);
            assert_eq!(found["completionPolicy"], json!({"type": "Always"}));
            assert_eq!(found["failurePolicy"], json!({"type": "FailFast"}));
            assert_eq!(found["parallelism"], i32::MAX);
            let pod = &found["template"]["spec"];
            assert_eq!(pod["dnsPolicy"], "ClusterFirst");
            assert_eq!(pod["containers"][0]["imagePullPolicy"], "Always");
        }
    }

    #[test]
    fn a_job_without_restart_policy_is_refused() {
        let mut spec = good();
        spec["template"]["spec"]
            .as_object_mut()
            .unwrap()
            .remove("restartPolicy");
        let message = CASE.refused("v1beta1", &CASE.mutated("v1beta1", &spec)).unwrap();
        assert!(message.contains("spec.template.spec.restartPolicy"), "{message}");
    }

    #[test]
    #[rustfmt::skip]
    fn every_broken_rule_names_its_field() {
        CASE.each_is_refused(&[
            ("parallelism", json!(-1), "spec.parallelism: Invalid value: -1"),
            ("parallelism", json!("many"), "spec.parallelism: Invalid value: \"many\""),
            ("completionPolicy.type", json!("Never"), "spec.completionPolicy.activeDeadlineSeconds: Invalid"),
            ("completionPolicy", json!({"type": "Never", "ttlSecondsAfterFinished": 0}), "spec.completionPolicy.ttlSecondsAfterFinished: Invalid"),
            ("completionPolicy.type", json!("Later"), "spec.completionPolicy.type: Unsupported"),
            ("failurePolicy", json!({"type": "Ignore"}), "spec.failurePolicy.type: Unsupported"),
            ("template.spec.restartPolicy", json!("Always"), "spec.template.spec.restartPolicy: Invalid"),
            ("template.spec.containers.0.name", json!("A"), "spec.template.spec.containers[0].name: Invalid"),
            ("template.metadata", json!({"labels": {"broadcastjob-name": "x"}}), "spec.template.metadata.labels: Invalid"),
            ("template.metadata", json!({"labels": {"broadcastjob-controller-uid": "x"}}), "spec.template.metadata.labels: Invalid"),
        ]);
    }

    #[test]
    fn a_job_whose_pods_fail_at_the_first_restart_is_warned_of() {
        let warnings = |restart: &str, policy: Value| {
            let mut spec = good();
            spec["template"]["spec"]["restartPolicy"] = json!(restart);
            spec["failurePolicy"] = policy;
            CASE.warnings("CREATE", &CASE.object("v1beta1", &spec), &Value::Null)
        };
        for (policy, consequence) in [
            ("FailFast", "ends the job"),
            ("Pause", "pauses the job"),
            ("Continue", "the job does not wait for the pod any more"),
        ] {
            let [warning] = warnings("OnFailure", json!({"type": policy})).try_into().unwrap();
            assert!(
                warning.starts_with("spec.failurePolicy.restartLimit: ") && warning.ends_with(consequence),
                "{warning}"
            );
            assert!(warnings("OnFailure", json!({"type": policy, "restartLimit": 3})).is_empty());
            assert!(warnings("Never", json!({"type": policy})).is_empty());
        }
    }

    #[test]
    fn names_have_no_dots() {
        let mut job = CASE.object("v1beta1", &good());
        job["metadata"]["name"] = json!("a.b");
        let (code, message) = CASE.refusal("CREATE", &job, &Value::Null).unwrap();
        assert!(
            code == 422 && message.contains("metadata.name: Invalid"),
            "{message}"
        );
    }

    #[test]
    fn everything_may_change_and_a_changed_template_is_completed() {
        let old = CASE.object("v1beta1", &good());
        let mut new = old.clone();
        new["spec"]["parallelism"] = json!(2);
        let found = CASE.mutated_object("UPDATE", &new, &old);
        assert_eq!(found["spec"]["template"], old["spec"]["template"]);
        new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("check:2");
        let found = CASE.mutated_object("UPDATE", &new, &old);
        assert_eq!(found["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst");
        assert_eq!(CASE.refusal("UPDATE", &found, &old), None);
    }
}
