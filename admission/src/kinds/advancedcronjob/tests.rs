use serde_json::json;

use super::*;
use crate::kinds::testing::{Case, case};

const CASE: Case = case("AdvancedCronJob", good);

fn pods(policy: &str) -> Value {
    json!({"spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "clean:2"}]}})
}

fn good() -> Value {
    json!({
        "schedule": "0 2 * * *",
        "timeZone": "Europe/Oslo",
        "template": {"broadcastJobTemplate": {"spec": {"template": pods("Never"), "newerThanUs": 1}}},
    })
}

fn pulls() -> Value {
    json!({
        "schedule": "@daily",
        "template": {"imageListPullJobTemplate": {"spec": {"images": ["nginx:1"], "completionPolicy": {}}}},
    })
}

#[test]
fn policies_limits_and_pods_are_filled_in() {
    for version in ["v1alpha1", "v1beta1"] {
        for name in ["jobTemplate", "broadcastJobTemplate"] {
            let mut spec = good();
            let template = spec["template"]["broadcastJobTemplate"].take();
            spec["template"] = json!({name: template});
            let found = CASE.mutated(version, &spec);
            assert_eq!(found["concurrencyPolicy"], "Allow");
            assert_eq!(found["paused"], false);
            assert_eq!(found["successfulJobsHistoryLimit"], 3);
            assert_eq!(found["failedJobsHistoryLimit"], 1);
            let job = &found["template"][name]["spec"];
            assert_eq!(job["template"]["spec"]["dnsPolicy"], "ClusterFirst");
            assert_eq!(job["newerThanUs"], 1);
            assert_eq!(job.get("completionPolicy"), None, "that is the child's webhook's");
        }
    }
}

#[test]
fn pulls_replace_each_other_and_end() {
    let found = CASE.mutated("v1beta1", &pulls());
    assert_eq!(found["concurrencyPolicy"], "Replace");
    assert_eq!(
        found["template"]["imageListPullJobTemplate"]["spec"],
        json!({
            "images": ["nginx:1"], "completionPolicy": {"type": "Always"}, "imagePullPolicy": "IfNotPresent",
            "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3},
        })
    );
    assert_eq!(CASE.refused("v1beta1", &found), None);
    let mut said = pulls();
    said["template"]["imageListPullJobTemplate"]["spec"]["completionPolicy"] = json!({"type": "Always"});
    let found = CASE.mutated("v1beta1", &said);
    assert_eq!(found["template"], said["template"]);
}

#[test]
fn a_stored_template_is_completed_only_when_it_changes() {
    let old = CASE.object("v1beta1", &good());
    let mut new = old.clone();
    new["spec"]["schedule"] = json!("@hourly");
    let found = CASE.mutated_object("UPDATE", &new, &old);
    assert_eq!(found["spec"]["template"], old["spec"]["template"]);
}

#[test]
#[rustfmt::skip]
fn every_broken_rule_names_its_field() {
    CASE.each_is_refused(&[
        ("schedule", json!(""), "spec.schedule: Required"),
        ("schedule", json!("0 0 * * 7"), "spec.schedule: Invalid value: \"0 0 * * 7\""),
        ("schedule", json!("TZ=UTC 0 0 * * *"), "spec.timeZone: Invalid value: \"Europe/Oslo\": cannot be set"),
        ("schedule", json!("TZ=UTC"), "spec.schedule: Invalid"),
        ("timeZone", json!(""), "spec.timeZone: Invalid value: \"\""),
        ("timeZone", json!("local"), "spec.timeZone: Invalid value: \"local\": must be an explicit"),
        ("timeZone", json!("Mars/Base"), "spec.timeZone: Invalid value: \"Mars/Base\": unknown"),
        ("startingDeadlineSeconds", json!(-1), "spec.startingDeadlineSeconds: Invalid value: -1"),
        ("successfulJobsHistoryLimit", json!(-1), "spec.successfulJobsHistoryLimit: Invalid value: -1"),
        ("failedJobsHistoryLimit", json!(-1), "spec.failedJobsHistoryLimit: Invalid value: -1"),
        ("concurrencyPolicy", json!("Queue"), "spec.concurrencyPolicy: Unsupported"),
        ("template", json!({}), "spec.template: Forbidden: a template is needed"),
        ("template.jobTemplate", json!({"spec": {"template": pods("Never")}}), "spec.template: Forbidden: may not specify more than 1"),
        ("template.broadcastJobTemplate.spec.template.spec.containers", json!([]), "spec.template.broadcastJobTemplate.spec.template.spec.containers: Required"),
        ("template", json!({"jobTemplate": {"spec": {}}}), "spec.template.jobTemplate.spec.template: Required"),
    ]);
}

#[test]
#[rustfmt::skip]
fn every_broken_rule_about_pulls_names_its_field() {
    const PULLS: Case = case("AdvancedCronJob", pulls);
    const AT: &str = "template.imageListPullJobTemplate.spec";
    let at = |name: &str| format!("{AT}.{name}");
    let (images, policy, selector) = (at("images"), at("completionPolicy"), at("selector"));
    let (pods, parallelism) = (at("podSelector"), at("parallelism"));
    PULLS.each_is_refused(&[
        ("concurrencyPolicy", json!("Allow"), "spec.concurrencyPolicy: Unsupported"),
        (&images, json!([]), "spec.template.imageListPullJobTemplate.spec.images: Required"),
        (&images, json!(["a", "a"]), "spec.template.imageListPullJobTemplate.spec.images[1]: Duplicate"),
        (&images, json!(["A b"]), "spec.template.imageListPullJobTemplate.spec.images[0]: Invalid"),
        (&policy, json!({"type": "Never"}), "imageListPullJobTemplate.spec.completionPolicy.type: Unsupported"),
        (&policy, json!({"ttlSecondsAfterFinished": 1}), "completionPolicy.ttlSecondsAfterFinished: Invalid"),
        (&policy, json!({"activeDeadlineSeconds": 86401}), "completionPolicy.activeDeadlineSeconds: Invalid value: 86401"),
        (&policy, json!({"activeDeadlineSeconds": 599}), "completionPolicy.activeDeadlineSeconds: Invalid value: 599"),
        (&selector, json!({"names": ["a", "a"]}), "spec.template.imageListPullJobTemplate.spec.selector.names[1]: Duplicate"),
        (&selector, json!({"names": ["a"], "matchLabels": {"a": "b"}}), "spec.selector.names: Forbidden"),
        (&pods, json!({"matchLabels": {"a b": ""}}), "spec.podSelector.matchLabels: Invalid"),
        (&parallelism, json!("10%"), "imageListPullJobTemplate.spec.parallelism: Invalid"),
    ]);
}

#[test]
fn templates_of_pods_stay_and_those_of_pulls_may_change() {
    let old = CASE.mutated("v1beta1", &good());
    for (path, value) in [
        ("schedule", json!("@hourly")),
        ("timeZone", json!("UTC")),
        ("paused", json!(true)),
        ("concurrencyPolicy", json!("Forbid")),
        ("startingDeadlineSeconds", json!(10)),
        // as it was written, before it was filled in
        ("template", good()["template"].clone()),
    ] {
        let mut new = old.clone();
        new[path] = value;
        assert_eq!(CASE.update_refused(&old, &new), None, "{path}");
    }
    let mut new = old.clone();
    new["template"]["broadcastJobTemplate"]["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("clean:3");
    let message = CASE.update_refused(&old, &new).unwrap();
    assert!(message.contains("spec.template: Forbidden"), "{message}");
    let mut new = pulls();
    new["template"]["imageListPullJobTemplate"]["spec"]["images"] = json!(["nginx:2"]);
    assert_eq!(CASE.update_refused(&pulls(), &new), None);
    new["template"] = good()["template"].clone();
    let message = CASE.update_refused(&pulls(), &new).unwrap();
    assert!(message.contains("spec.template: Forbidden"), "{message}");
}

#[test]
fn the_older_version_has_the_template_that_is_kept_for_it() {
    let newer = CASE.object("v1beta1", &CASE.mutated("v1beta1", &pulls()));
    let mut older = newer.clone();
    kruise_api::kinds::convert(&kruise_api::kinds::ALL, &mut older, "apps.kruise.io/v1alpha1").unwrap();
    let mut new = older.clone();
    new["spec"]["schedule"] = json!("@hourly");
    assert_eq!(CASE.refusal("UPDATE", &new, &older), None);
    assert_eq!(CASE.refusal("CREATE", &older, &Value::Null), None);
    let found = CASE.mutated_object("UPDATE", &new, &older);
    assert_eq!(found["spec"]["concurrencyPolicy"], "Replace");
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
fn what_no_job_can_be_created_with_is_accepted_with_a_warning() {
    let warned = |spec: &Value| {
        let object = CASE.object("v1beta1", spec);
        CASE.warnings("CREATE", &object, &Value::Null)
    };
    assert_eq!(warned(&good()), [""; 0]);
    for name in ["jobTemplate", "broadcastJobTemplate"] {
        let mut spec = good();
        spec["template"] = json!({name: {"spec": {"template": pods("Always")}}});
        let path = format!("spec.template.{name}.spec.template.spec.restartPolicy: ");
        let found = warned(&spec);
        assert!(found.len() == 1 && found[0].starts_with(&path), "{found:?}");
    }
    let mut never = good();
    never["template"]["broadcastJobTemplate"]["spec"]["completionPolicy"] =
        json!({"type": "Never", "activeDeadlineSeconds": 5});
    let found = warned(&never);
    let path = "spec.template.broadcastJobTemplate.spec.completionPolicy.activeDeadlineSeconds";
    assert!(found.len() == 1 && found[0].starts_with(path), "{found:?}");
    let mut long = CASE.object("v1beta1", &good());
    long["metadata"]["name"] = json!("a".repeat(52));
    assert_eq!(CASE.warnings("CREATE", &long, &Value::Null), [""; 0]);
    long["metadata"]["name"] = json!("a".repeat(53));
    let found = CASE.warnings("CREATE", &long, &Value::Null);
    assert!(found.len() == 1 && found[0].contains("more than 52"), "{found:?}");
}

#[test]
fn a_schedule_that_never_comes_is_warned_of() {
    for (schedule, never) in [
        ("0 0 30 2 *", true),
        ("0 0 29 2 *", false),
        ("TZ=Asia/Tokyo 0 0 31 4 *", true),
    ] {
        let (case, mut object) = super::super::testing::sample("AdvancedCronJob");
        object["spec"]["schedule"] = serde_json::json!(schedule);
        object["spec"].as_object_mut().unwrap().remove("timeZone");
        let texts = case.warnings("CREATE", &object, &serde_json::Value::Null);
        assert_eq!(
            texts.iter().any(|text| text.starts_with("spec.schedule: ")),
            never,
            "{schedule}: {texts:?}"
        );
    }
}
