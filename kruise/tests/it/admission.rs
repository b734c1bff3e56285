//! Webhooks in a playground: defaults, refusals with the path of the field, and warnings about kinds without a
//! controller.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{Playground, Scratch};

/// Time limit for a pod to run, for busy machines.
const LIMIT: Duration = Duration::from_mins(3);

/// A kind with a valid specification, the defaults in it once it is stored, and changes that make it invalid: pointer,
/// value, and the field in the message.
struct Case {
    plural: &'static str,
    version: &'static str,
    kind: &'static str,
    valid: Value,
    defaults: &'static [(&'static str, &'static str)],
    invalid: Vec<(&'static str, Value, &'static str)>,
}

fn template(restart: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "good"}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "nginx:1"}]},
    })
}

fn workloads() -> Vec<Case> {
    let good = json!({"selector": {"matchLabels": {"app": "good"}}, "template": template("Always")});
    vec![
        Case {
            plural: "statefulsets",
            version: "v1beta1",
            kind: "StatefulSet",
            valid: good.clone(),
            defaults: &[
                ("/podManagementPolicy", "\"OrderedReady\""),
                ("/updateStrategy/rollingUpdate/maxUnavailable", "1"),
                ("/persistentVolumeClaimRetentionPolicy/whenScaled", "\"Retain\""),
                ("/template/spec/dnsPolicy", "\"ClusterFirst\""),
            ],
            invalid: vec![
                ("/reserveOrdinals", json!(["5-2"]), "spec.reserveOrdinals[0]"),
                (
                    "/template/spec/restartPolicy",
                    json!("Never"),
                    "spec.template.spec.restartPolicy",
                ),
            ],
        },
        Case {
            plural: "daemonsets",
            version: "v1beta1",
            kind: "DaemonSet",
            valid: good,
            defaults: &[
                ("/burstReplicas", "250"),
                ("/updateStrategy/rollingUpdate/rollingUpdateType", "\"Standard\""),
            ],
            invalid: vec![
                (
                    "/lifecycle",
                    json!({"inPlaceUpdate": {"markPodNotReady": true}}),
                    "spec.lifecycle.inPlaceUpdate",
                ),
                (
                    "/template/spec/containers",
                    json!([{"name": "main"}]),
                    "spec.template.spec.containers[0].image",
                ),
            ],
        },
    ]
}

fn jobs() -> Vec<Case> {
    let broadcast = json!({"template": template("Never")});
    vec![
        Case {
            plural: "broadcastjobs",
            version: "v1beta1",
            kind: "BroadcastJob",
            valid: broadcast.clone(),
            defaults: &[
                ("/completionPolicy/type", "\"Always\""),
                ("/failurePolicy/type", "\"FailFast\""),
                ("/parallelism", "2147483647"),
            ],
            invalid: vec![(
                "/template/spec/restartPolicy",
                json!("Always"),
                "spec.template.spec.restartPolicy",
            )],
        },
        Case {
            plural: "advancedcronjobs",
            version: "v1beta1",
            kind: "AdvancedCronJob",
            valid: json!({"schedule": "@daily", "template": {"broadcastJobTemplate": {"spec": broadcast}}}),
            defaults: &[
                ("/concurrencyPolicy", "\"Allow\""),
                ("/failedJobsHistoryLimit", "1"),
            ],
            invalid: vec![
                ("/schedule", json!("0 0 * * 7"), "spec.schedule"),
                ("/timeZone", json!("Mars/Base"), "spec.timeZone"),
            ],
        },
    ]
}

fn requests() -> Vec<Case> {
    vec![
        Case {
            plural: "containerrecreaterequests",
            version: "v1beta1",
            kind: "ContainerRecreateRequest",
            valid: json!({"podName": "web-0", "containers": [{"name": "web"}]}),
            defaults: &[("/strategy/failurePolicy", "\"Fail\"")],
            invalid: vec![(
                "/containers",
                json!([{"name": "web"}, {"name": "web"}]),
                "spec.containers[1].name",
            )],
        },
        Case {
            plural: "podprobemarkers",
            version: "v1alpha1",
            kind: "PodProbeMarker",
            valid: json!({"selector": {"matchLabels": {"app": "game"}}, "probes": [{
                "name": "idle", "containerName": "main", "podConditionType": "game.example/idle",
                "probe": {"exec": {"command": ["/idle.sh"]}},
            }]}),
            defaults: &[],
            invalid: vec![("/probes/0/name", json!("a#b"), "spec.probes[0].name")],
        },
    ]
}

/// Creates the pod that requests refer to, and waits until its container runs.
fn run_pod(playground: &Playground) {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"},
        "spec": {"containers": [{"name": "web", "image": "nginx:1"}]}});
    let (code, answer) = playground.request("POST", PODS, "application/json", &pod.to_string());
    assert_eq!(code, 201, "{answer}");
    let deadline = Instant::now() + LIMIT;
    loop {
        let (_, pod) = playground.request("GET", &format!("{PODS}/web-0"), "application/json", "");
        if pod["status"]["containerStatuses"][0]["containerID"].is_string() {
            return;
        }
        assert!(Instant::now() < deadline, "{pod}");
        sleep(Duration::from_millis(50));
    }
}

/// What the author of an object is warned of that nothing acts on.
const NO_CONTROLLER: &str = "no controller for";

#[test]
fn kinds_with_a_controller_are_created_without_a_warning() {
    let scratch = Scratch::new("warnings");
    let playground = Playground::start(&scratch, &["--fast"]);
    let good = json!({"selector": {"matchLabels": {"app": "good"}}, "template": template("Always")});
    let sidecars =
        json!({"selector": {"matchLabels": {"a": "b"}}, "containers": [{"name": "c", "image": "c:1"}]});
    for (kind, path, spec) in [
        ("CloneSet", "namespaces/default/clonesets", good.clone()),
        ("StatefulSet", "namespaces/default/statefulsets", good),
        ("SidecarSet", "sidecarsets", sidecars),
    ] {
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": {"name": "good"}, "spec": spec});
        let path = format!("/apis/apps.kruise.io/v1beta1/{path}");
        let (head, answer) = playground.exchange("POST", &path, "application/json", &object.to_string());
        assert!(head.starts_with("HTTP/1.1 201"), "{head} {answer}");
        assert!(!head.to_lowercase().contains("\nwarning:"), "{head}");
    }
}

#[test]
fn webhooks_default_and_validate_and_warn_of_no_kind_as_each_has_a_controller() {
    let scratch = Scratch::new("admission");
    let playground = Playground::start(&scratch, &["--fast"]);
    run_pod(&playground);
    for one in workloads().into_iter().chain(jobs()).chain(requests()) {
        let path = format!(
            "/apis/apps.kruise.io/{}/namespaces/default/{}",
            one.version, one.plural
        );
        let create = |spec: &Value| {
            let object = json!({
                "apiVersion": format!("apps.kruise.io/{}", one.version), "kind": one.kind,
                "metadata": {"name": "good"}, "spec": spec,
            });
            playground.exchange("POST", &path, "application/json", &object.to_string())
        };
        for (pointer, value, field) in &one.invalid {
            let mut spec = one.valid.clone();
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            spec.pointer_mut(parent).unwrap()[name] = value.clone();
            let (head, answer) = create(&spec);
            assert!(head.starts_with("HTTP/1.1 4"), "{pointer}: {head} {answer}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains(field), "{pointer}: {message}");
        }
        let (head, stored) = create(&one.valid);
        assert!(head.starts_with("HTTP/1.1 201"), "{head} {stored}");
        assert!(!head.contains(NO_CONTROLLER), "{head}");
        for (pointer, value) in one.defaults {
            let found = stored["spec"].pointer(pointer).map(Value::to_string);
            assert_eq!(found.as_deref(), Some(*value), "{} {pointer}", one.kind);
        }
    }
}
