use serde_json::{Value, json};

use super::super::testing::{OPTIONS, decided, quiet, webhooks_of};
use crate::table::Phase;
use crate::{Options, Request, Response};

fn request(kind: &str, operation: &str, spec: &Value, old: &Value) -> Request {
    let object = json!({"metadata": {"name": "warm"}, "spec": spec});
    Request::from_review(json!({
        "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": kind},
        "name": "warm", "operation": operation, "object": object, "oldObject": {"spec": old},
    }))
    .unwrap()
}

fn job() -> Value {
    json!({"image": "nginx:1", "parallelism": 5, "newerThanUs": {"a": 1},
           "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 1200}})
}

fn jobs() -> Value {
    json!({"images": ["nginx:1", "busybox"], "completionPolicy": {"type": "Never"}})
}

/// The first of these members that differ from the base, made to.
fn with(mut spec: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn refusal(kind: &str, operation: &str, spec: &Value, old: &Value) -> String {
    let request = request(kind, operation, spec, old);
    let webhooks = webhooks_of(kind);
    match decided(webhooks, Phase::Validating, &request, OPTIONS, &quiet) {
        Response::Allow { .. } => String::new(),
        Response::Deny { code, message, .. } => {
            assert_eq!(code, 400);
            message
        }
    }
}

#[test]
fn what_is_left_out_is_filled_in_and_nothing_else_changes() {
    let filled = |kind: &str, spec: &Value| {
        let request = request(kind, "CREATE", spec, &Value::Null);
        let webhooks = webhooks_of(kind);
        let response = decided(webhooks, Phase::Mutating, &request, OPTIONS, &quiet);
        response.applied_to(&request.object)["spec"].clone()
    };
    let policies = json!({"completionPolicy": {"type": "Always"}, "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3}});
    let one = json!({"image": "nginx", "newerThanUs": {"a": 1}});
    let mut expected = with(one.clone(), &policies);
    expected["imagePullPolicy"] = json!("IfNotPresent");
    assert_eq!(filled("ImagePullJob", &one), expected);
    let many = json!({"images": ["nginx"], "pullPolicy": {"timeoutSeconds": 9}});
    let mut expected = with(many.clone(), &policies);
    expected["pullPolicy"]["timeoutSeconds"] = json!(9);
    assert_eq!(filled("ImageListPullJob", &many), expected);
    assert_eq!(filled("ImageListPullJob", &expected), expected);
}

#[test]
fn sound_jobs_pass() {
    assert_eq!(refusal("ImagePullJob", "CREATE", &job(), &Value::Null), "");
    assert_eq!(refusal("ImageListPullJob", "CREATE", &jobs(), &Value::Null), "");
    for parallelism in [json!(0), json!("7"), Value::Null] {
        let spec = with(job(), &json!({"parallelism": parallelism}));
        assert_eq!(refusal("ImagePullJob", "CREATE", &spec, &Value::Null), "");
    }
}

#[test]
fn each_broken_rule_is_refused_with_its_field() {
    let many: Vec<String> = (0..256).map(|n| format!("image-{n}")).collect();
    let labels = json!({"matchLabels": {"a": "b"}, "names": ["n1"]});
    let cases = [
        ("ImagePullJob", json!({"image": ""}), "spec.image: Required"),
        ("ImagePullJob", json!({"image": "Foo"}), "spec.image: Invalid"),
        ("ImagePullJob", json!({"parallelism": -1}), "spec.parallelism"),
        ("ImagePullJob", json!({"parallelism": "20%"}), "spec.parallelism"),
        (
            "ImagePullJob",
            json!({"selector": labels}),
            "spec.selector.names: Forbidden",
        ),
        (
            "ImagePullJob",
            json!({"selector": {"names": ["a", "b", "a"]}}),
            "spec.selector.names[2]: Duplicate",
        ),
        (
            "ImagePullJob",
            json!({"selector": {"matchLabels": {"a": "not ok"}}}),
            "spec.selector.matchLabels",
        ),
        (
            "ImagePullJob",
            json!({"selector": {}, "podSelector": {}}),
            "spec.podSelector: Forbidden",
        ),
        (
            "ImagePullJob",
            json!({"completionPolicy": {"type": "Later"}}),
            "spec.completionPolicy.type",
        ),
        (
            "ImagePullJob",
            json!({"completionPolicy": {"type": "Never", "ttlSecondsAfterFinished": 1}}),
            "spec.completionPolicy.ttlSecondsAfterFinished",
        ),
        (
            "ImagePullJob",
            json!({"completionPolicy": {"activeDeadlineSeconds": 599}}),
            "spec.completionPolicy.activeDeadlineSeconds",
        ),
        ("ImageListPullJob", json!({"images": []}), "spec.images: Required"),
        (
            "ImageListPullJob",
            json!({"images": ["a", "a"]}),
            "spec.images[1]: Duplicate",
        ),
        (
            "ImageListPullJob",
            json!({"images": ["a", "B"]}),
            "spec.images[1]: Invalid",
        ),
        (
            "ImageListPullJob",
            json!({"images": many}),
            "spec.images: Too many",
        ),
        (
            "ImageListPullJob",
            json!({"completionPolicy": {"type": "Never", "activeDeadlineSeconds": 1}}),
            "spec.completionPolicy.activeDeadlineSeconds",
        ),
    ];
    for (kind, change, expected) in cases {
        let base = if kind == "ImagePullJob" { job() } else { jobs() };
        let spec = with(base, &change);
        let message = refusal(kind, "CREATE", &spec, &Value::Null);
        assert!(message.contains(expected), "{kind} {change}: {message:?}");
        // What is stored stays writable.
        assert_eq!(refusal(kind, "UPDATE", &spec, &spec), "", "{kind} {change}");
    }
}

#[test]
fn a_stored_flaw_stays_writable_at_another_place_of_its_list() {
    let list = |images: Value| with(jobs(), &json!({"images": images}));
    let stored = list(json!(["a", "B"]));
    let update = |images| refusal("ImageListPullJob", "UPDATE", &list(images), &stored);
    assert_eq!(update(json!(["B"])), "");
    assert_eq!(update(json!(["c", "d", "B"])), "");
    assert!(update(json!(["B", "C"])).contains("spec.images[1]"));
}

#[test]
fn secrets_of_a_job_stay_as_they_are_and_those_of_a_list_may_change() {
    let change = json!({"pullSecrets": ["other"]});
    let message = refusal("ImagePullJob", "UPDATE", &with(job(), &change), &job());
    assert!(message.contains("spec.pullSecrets is immutable"), "{message}");
    assert_eq!(
        refusal("ImageListPullJob", "UPDATE", &with(jobs(), &change), &jobs()),
        ""
    );
}

#[test]
fn without_their_gates_no_new_job_is_taken_and_stored_ones_can_be_changed() {
    for (options, gate) in [
        (Options::DEFAULT, "ImagePullJobGate"),
        (
            Options {
                daemon: false,
                ..Options::DEFAULT
            },
            "KruiseDaemon",
        ),
    ] {
        for (kind, spec) in [("ImagePullJob", job()), ("ImageListPullJob", jobs())] {
            let answer = |operation: &str, old: &Value| {
                let request = request(kind, operation, &spec, old);
                decided(webhooks_of(kind), Phase::Validating, &request, options, &quiet)
            };
            let Response::Deny { code, message, .. } = answer("CREATE", &Value::Null) else {
                panic!("{kind} without {gate}")
            };
            assert_eq!(
                (code, message),
                (403, format!("feature-gate {gate} is not enabled"))
            );
            assert!(
                matches!(answer("UPDATE", &spec), Response::Allow { .. }),
                "{kind}"
            );
        }
    }
}
