//! `kruise preflight` on clusters as OpenKruise left them, with and without planted problems.

use std::process::Command;

use kruise_e2e::kubectl::Kubectl;
use serde_json::{Value, json};

use crate::cluster::{LEASE, Scenario, bring_back_manager, scenario_alone, text, variable};
use crate::stored::{Left, Stored, restored};
use crate::takeover::stand_by;

/// OpenKruise lets the lease go, and the manager comes back, however the scenario ends.
struct StandBy<'s>(&'s Scenario);

impl Drop for StandBy<'_> {
    fn drop(&mut self) {
        let free = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
        let system = self.0.kubectl.in_namespace("kruise-system");
        if let Err(error) = system.patch("leases", LEASE, &free) {
            eprintln!("the lease is not free: {error:#}");
        }
        bring_back_manager(self.0.kubectl.kubeconfig());
    }
}

/// What the command prints as JSON, and its exit code.
fn preflight(kubectl: &Kubectl, arguments: &[&str]) -> (Value, i32) {
    let output = Command::new(variable("KRUISE_E2E_BIN"))
        .args(["preflight", "--output=json"])
        .args(arguments)
        .arg("--kubeconfig")
        .arg(kubectl.kubeconfig())
        .output()
        .unwrap();
    let code = output.status.code().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (report.unwrap_or_else(|error| panic!("{error}: {output:?}")), code)
}

/// All findings, each as `severity about: text`.
fn findings(report: &Value) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter();
    let findings = checks.flat_map(|check| check["findings"].as_array().unwrap());
    let line = |one: &Value| {
        format!(
            "{} {}: {}",
            text(one, "/severity"),
            text(one, "/about"),
            text(one, "/text")
        )
    };
    findings.map(line).collect()
}

/// What is no note about an object of the namespace.
fn problems(report: &Value, namespace: &str) -> Vec<String> {
    let mut lines = findings(report);
    lines.retain(|line| line.contains(&format!(" {namespace}/")) && !line.starts_with("note "));
    lines
}

const LEFT: [Left; 8] = [
    ("1.4", "rest"),
    ("1.7", "rest"),
    ("1.8.4", "rest"),
    ("1.9.0", "rest"),
    ("main", "rest"),
    ("1.8.4", "mid"),
    ("1.9.0", "mid"),
    ("main", "mid"),
];

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn what_five_versions_left_is_no_problem_and_five_planted_ones_are_found() {
    let scenario = scenario_alone("preflight");
    stand_by(&scenario);
    let _stand_by = StandBy(&scenario);
    let left = restored(&scenario, &LEFT, |beside, (version, phase)| {
        Stored::restore(&beside.kubectl, version, phase)
    });
    let (report, _) = preflight(&scenario.kubectl, &[]);
    let lines = findings(&report);
    for (beside, _) in &left {
        assert_eq!(problems(&report, beside.kubectl.namespace().unwrap()), [""; 0]);
        // Kubectl has written the older version, as the pipelines of users do. The embedded API keeps no writers.
        let show = [
            "get",
            "clonesets.v1alpha1.apps.kruise.io",
            "plain",
            "--output=json",
            "--show-managed-fields",
        ];
        if beside.kubectl.run(&show).unwrap().contains("kubectl-create") {
            assert!(
                lines.iter().any(|line| line.contains("writes v1alpha1")),
                "{lines:?}"
            );
        }
    }
    let of_1_9_0 = LEFT.iter().position(|left| *left == ("1.9.0", "rest")).unwrap();
    let (beside, stored) = &left[of_1_9_0];
    planted_problems_are_found(beside, stored);
}

/// A webhook of somebody else that calls the manager with a path that is not served. It is called for no request.
fn foreign_webhook() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "preflight-planted"},
        "webhooks": [{
            "name": "planted.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"service": {"name": "kruise-webhook-service", "namespace": "kruise-system", "path": "/planted"}},
            "rules": [{"apiGroups": ["planted.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["nothing"]}],
        }],
    })
}

/// Removes the planted configuration, which is in no namespace.
struct Planted<'s>(&'s Scenario);

impl Drop for Planted<'_> {
    fn drop(&mut self) {
        let delete = [
            "delete",
            "validatingwebhookconfiguration",
            "preflight-planted",
            "--ignore-not-found",
        ];
        let _gone = self.0.kubectl.run(&delete);
    }
}

/// Five problems are planted into what was left without any, and nothing is written.
fn planted_problems_are_found(scenario: &Scenario, stored: &Stored) {
    let kubectl = &scenario.kubectl;
    let namespace = kubectl.namespace().unwrap();
    let _planted = Planted(scenario);
    // A pod is missing that its status counts.
    let pods = scenario.uids_of("plain").len();
    let pod = text(&scenario.pods_of("plain")[0], "/metadata/name");
    kubectl
        .run(&[
            "delete",
            "pod",
            &pod,
            "--force",
            "--grace-period=0",
            "--wait=false",
        ])
        .unwrap();
    // A template that OpenKruise rolled out under another revision.
    let asts = kubectl
        .get("statefulsets.v1beta1.apps.kruise.io", "asts")
        .unwrap();
    let status = json!({"updateRevision": "asts-planted", "currentRevision": "asts-planted"});
    stored.put_status("statefulsets.v1beta1.apps.kruise.io", &asts, &status);
    // Somebody else's finalizer, and somebody else's webhook.
    let finalizer = json!({"metadata": {"finalizers": ["example.com/planted"]}});
    kubectl
        .patch("clonesets.v1alpha1.apps.kruise.io", "canary", &finalizer)
        .unwrap();
    kubectl.create(&foreign_webhook()).unwrap();
    let before = kubectl.get("clonesets.v1alpha1.apps.kruise.io", "plain").unwrap();

    let (report, code) = preflight(kubectl, &["--feature-gates=EnhancedLivenessProbe=true"]);
    assert_eq!((code, &report["advised"]), (1, &json!(false)));
    let lines = findings(&report);
    let has = |parts: &[&str]| {
        let found = lines
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "{parts:?} in {lines:#?}");
    };
    has(&[
        "problem",
        &format!("CloneSet {namespace}/plain"),
        "is at rest, and 1 of its pods would change",
        "is created",
    ]);
    has(&[
        "problem",
        &format!("StatefulSet {namespace}/asts"),
        "OpenKruise is at revision asts-planted",
    ]);
    has(&["problem", "EnhancedLivenessProbe"]);
    has(&["problem", "configuration preflight-planted", "/planted"]);
    has(&[
        "note",
        "finalizer example.com/planted",
        &format!("CloneSet {namespace}/canary"),
    ]);
    assert!(report["podsThatWouldChange"].as_u64().unwrap() >= 1, "{lines:?}");

    assert_eq!(scenario.uids_of("plain").len(), pods - 1, "no pod was created");
    let after = kubectl.get("clonesets.v1alpha1.apps.kruise.io", "plain").unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    kubectl
        .patch(
            "clonesets.v1alpha1.apps.kruise.io",
            "canary",
            &json!({"metadata": {"finalizers": null}}),
        )
        .unwrap();
}
