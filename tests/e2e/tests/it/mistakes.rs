//! Templates that no pod can have are refused as the server refuses them, and pods are not deleted for others that
//! it does not take.

use std::collections::BTreeSet;
use std::path::Path;

use kruise_e2e::audit::{AuditLog, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, container, scenario, text, web};
use crate::templates::accepted;

/// Single mistakes: members of the pod, or of its one container, in the place of good ones.
fn mistakes() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/templates/mistakes.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A template with this mistake, of pods that restart or do not.
fn template(mistake: &Value, restarts: &str) -> Value {
    let mut container = json!({"name": "main", "image": "w:1"});
    put_all(&mut container, &mistake["container"]);
    let mut spec = json!({"restartPolicy": restarts, "containers": [container]});
    put_all(&mut spec, &mistake["pod"]);
    json!({"metadata": {"labels": {"app": "t"}}, "spec": spec})
}

fn put_all(into: &mut Value, members: &Value) {
    let members = members.as_object().cloned().unwrap_or_default();
    into.as_object_mut().unwrap().extend(members);
}

/// What a server takes of these templates.
fn taken(kubectl: &Kubectl, api_version: &str, kind: &str, templates: &[Value]) -> BTreeSet<String> {
    accepted(kubectl, api_version, kind, templates).0
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_template_is_refused_in_every_kind_as_the_server_refuses_it_alone() {
    let scenario = scenario("mistakes");
    let kubectl = &scenario.kubectl;
    let mistakes = mistakes();
    let of = |restarts: &str| -> Vec<Value> {
        mistakes
            .iter()
            .map(|mistake| template(mistake, restarts))
            .collect()
    };
    let limited = mistakes
        .iter()
        .position(|mistake| !mistake["pod"]["activeDeadlineSeconds"].is_null());
    let limited = format!("t-{:03}", limited.unwrap());
    for (restarts, kinds) in [
        ("Always", &["CloneSet", "StatefulSet", "DaemonSet"][..]),
        ("Never", &["BroadcastJob"]),
    ] {
        let templates = of(restarts);
        let mut alone = taken(kubectl, "v1", "PodTemplate", &templates);
        println!(
            "{restarts}: the server takes {} of {}",
            alone.len(),
            templates.len()
        );
        // Otherwise the comparison proves nothing.
        assert!(alone.len() * 2 < templates.len(), "{alone:?}");
        if restarts == "Always" {
            // A rule of these kinds.
            alone.remove(&limited);
        }
        for kind in kinds {
            let ours = taken(kubectl, "apps.kruise.io/v1beta1", kind, &templates);
            assert_eq!(ours, alone, "{kind}");
        }
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn no_pod_is_deleted_for_one_that_the_server_does_not_take() {
    let scenario = scenario("refused-pods");
    let kubectl = &scenario.kubectl;
    let mut set = web(3);
    set["spec"]["updateStrategy"] = json!({"type": "ReCreate", "maxUnavailable": 3});
    kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    let before = scenario.uids();
    // A template may name a class that does not exist, and a pod may not.
    let class = |name: Value| json!({"spec": {"template": {"spec": {"priorityClassName": name}}}});
    scenario.patch(&class(json!("no-such-class")));
    wait::until_true("the rollout is held", LIMIT, || {
        let set = kubectl.get("clonesets", "web")?;
        let conditions = set["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let held = |one: &Value| one["type"] == "Stalled" && one["reason"] == "PodsRefused";
        let found = conditions.into_iter().find(held);
        Ok(found.is_some_and(|one| text(&one, "/message").contains("no-such-class")))
    })
    .unwrap();
    assert_eq!(scenario.uids(), before, "no pod is deleted");
    scenario.patch(&json!({"spec": {"replicas": 2}}));
    scenario.until_status(&json!({"replicas": 2}));
    scenario.patch(&class(Value::Null));
    scenario.until_status(&json!({"updatedReadyReplicas": 2, "readyReplicas": 2}));
    wait::until_true("nothing holds it", LIMIT, || {
        let set = kubectl.get("clonesets", "web")?;
        let conditions = set["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        Ok(!conditions.iter().any(|one| one["type"] == "Stalled"))
    })
    .unwrap();
    assert!(
        scenario.uids().iter().all(|uid| before.contains(uid)),
        "undone without a deletion"
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_full_quota_holds_no_rollout() {
    let scenario = scenario("full-quota");
    let kubectl = &scenario.kubectl;
    let mut set = web(3);
    set["spec"]["updateStrategy"] = json!({"type": "ReCreate", "maxUnavailable": 1});
    kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"},
                       "spec": {"hard": {"pods": "3"}}});
    kubectl.apply(&quota).unwrap();
    wait::until_true("the quota is full", LIMIT, || {
        let quota = kubectl.get("resourcequotas", "full")?;
        Ok(quota["status"]["used"]["pods"] == "3")
    })
    .unwrap();
    scenario.patch(
        &json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}}}),
    );
    scenario.until_status(&json!({"updatedReadyReplicas": 3, "replicas": 3}));
}

/// How many templates the server was asked about since the last call.
fn asked(log: &mut AuditLog) -> usize {
    let entries = log.read_new(MANAGER).unwrap();
    let is_ask =
        |entry: &&kruise_e2e::audit::Entry| entry.verb == "create" && entry.resource == "podtemplates";
    entries.iter().filter(is_ask).count()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_new_template_costs_one_request_a_refused_one_two_and_the_same_one_none() {
    let scenario = scenario("asked");
    let (kubectl, mut log) = (&scenario.kubectl, scenario.audit_log());
    kubectl.apply(&web(1)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 1}));
    assert_eq!(asked(&mut log), 1, "a new set");
    scenario.patch(&json!({"spec": {"replicas": 2}}));
    scenario.until_status(&json!({"readyReplicas": 2}));
    assert_eq!(asked(&mut log), 0, "the same template");
    scenario.patch(&container("nginx:2", "b"));
    scenario.until_status(&json!({"updatedReadyReplicas": 2}));
    assert_eq!(asked(&mut log), 1, "another template");
    // Known to the server alone. The stored template is shown to it too, as only a mistake that is new may be refused.
    let sysctls = json!({"sysctls": [{"name": "A B", "value": "1"}]});
    let wrong = json!({"spec": {"template": {"spec": {"securityContext": sysctls}}}});
    let refused = kubectl.patch("clonesets", "web", &wrong).unwrap_err().to_string();
    assert!(
        refused.contains("spec.template.spec.securityContext.sysctls[0].name"),
        "{refused}"
    );
    assert_eq!(asked(&mut log), 2, "a template that is refused");
}
