//! A CloneSet is deleted: what is deleted with it, and what a manager is needed for.

use std::time::Duration;

use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{
    Flagged, LIMIT, Scenario, Stopped, scenario, scenario_alone, scenario_gated, text, web,
};

const PROTECTION: &str = "policy.kruise.io/delete-protection";

fn running(namespace: &str) -> Scenario {
    let scenario = scenario(namespace);
    scenario.kubectl.apply(&web(2)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 2}));
    scenario
}

fn delete(scenario: &Scenario, cascade: &str) {
    let delete = ["delete", "clonesets", "web", cascade, "--wait=false"];
    scenario.kubectl.run(&delete).unwrap();
}

fn set(scenario: &Scenario) -> Option<Value> {
    scenario.kubectl.list("clonesets", "").unwrap().pop()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn deletion_in_the_background_takes_pods_and_revisions_along() {
    let scenario = running("delete-background");
    delete(&scenario, "--cascade=background");
    wait::until_true("nothing is left", wait::QUIET, || {
        let pods = scenario.kubectl.list("pods", "")?;
        let revisions = scenario.kubectl.list("controllerrevisions", "")?;
        Ok(set(&scenario).is_none() && pods.is_empty() && revisions.is_empty())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn deletion_in_the_foreground_waits_for_the_pods() {
    let scenario = running("delete-foreground");
    let there = scenario.uids();
    let pods = Watch::start(&scenario.kubectl, "pods", "").unwrap();
    let sets = Watch::start(&scenario.kubectl, "clonesets", "").unwrap();
    pods.until_shown(there.len(), LIMIT).unwrap();
    sets.until_shown(1, LIMIT).unwrap();
    delete(&scenario, "--cascade=foreground");
    wait::until_true("set and pods are gone", wait::QUIET, || {
        Ok(set(&scenario).is_none() && scenario.kubectl.list("pods", "")?.is_empty())
    })
    .unwrap();
    wait::observe_for(Duration::from_secs(2));

    assert!(
        scenario.kubectl.list("pods", "").unwrap().is_empty(),
        "none comes later"
    );
    let pods = pods.stop().unwrap();
    // A manager may see the pods deleted before it sees that their CloneSet is, and recreate them; then it sees
    // that, too.
    let made = pods.iter().filter(|event| event["type"] == "ADDED").count();
    assert!(
        made <= 2 * there.len(),
        "made anew once at most: {made} of {}",
        there.len()
    );
    let set_gone = deletions(&sets.stop().unwrap());
    let [set_gone] = set_gone[..] else {
        panic!("not one set was deleted: {set_gone:?}");
    };
    let (first, anew): (Vec<Value>, Vec<Value>) = pods
        .into_iter()
        .partition(|event| there.contains(&text(event, "/object/metadata/uid")));
    let pods_gone = deletions(&first);
    assert!(
        pods_gone.len() == there.len() && pods_gone.iter().all(|pod| *pod < set_gone),
        "{pods_gone:?} {set_gone}"
    );
    assert_eq!(deletions(&anew).len(), made - there.len(), "none stays");
}

/// Versions at which objects were deleted; they grow with time across all resources.
fn deletions(events: &[Value]) -> Vec<u64> {
    let deleted = events.iter().filter(|event| event["type"] == "DELETED");
    deleted
        .map(|event| text(event, "/object/metadata/resourceVersion").parse().unwrap())
        .collect()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn with_the_feature_gate_protected_clonesets_are_kept_and_all_others_are_deleted() {
    let scenario = scenario_gated("delete-protected-sets");
    let create = |name: &str, protection: Option<&str>| {
        let mut set = web(1);
        set["metadata"]["name"] = json!(name);
        if let Some(protection) = protection {
            set["metadata"]["labels"] = json!({PROTECTION: protection});
        }
        scenario.kubectl.create(&set).unwrap();
    };
    create("always", Some("Always"));
    create("cascading", Some("Cascading"));
    create("unknown", Some("Sometimes"));
    create("plain", None);
    let delete = |name: &'static str| ["delete", "clonesets", name];
    for (name, because) in [
        ("always", "delete-protection=Always"),
        ("cascading", "delete-protection=Cascading and replicas 1>0"),
    ] {
        let refusal = scenario.kubectl.refused(&delete(name), "").unwrap();
        let expected = format!("forbidden by ResourcesProtectionDeletion for policy.kruise.io/{because}");
        assert!(refusal.contains(&expected), "{refusal}");
        // It has no reason for programs.
        assert!(!refusal.contains("(Forbidden)"), "{refusal}");
    }
    scenario
        .kubectl
        .run(&["scale", "clonesets", "cascading", "--replicas=0"])
        .unwrap();
    scenario
        .kubectl
        .run(&[
            "label",
            "clonesets",
            "always",
            "policy.kruise.io/delete-protection-",
        ])
        .unwrap();
    for name in ["always", "cascading", "unknown", "plain"] {
        scenario.kubectl.run(&delete(name)).unwrap();
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn without_a_manager_only_protected_objects_stay_and_whole_namespaces_go() {
    let scenario = scenario_alone("delete-unmanaged");
    let kubectl = &scenario.kubectl;
    let _flagged = Flagged::shared(
        kubectl.kubeconfig(),
        &["--feature-gates=ResourcesDeletionProtection=true"],
    );
    let mut protected = web(0);
    protected["metadata"] = json!({"name": "protected", "labels": {PROTECTION: "Always"}});
    kubectl.create(&protected).unwrap();
    let whole = scenario.beside("delete-without-manager");
    whole.kubectl.apply(&web(2)).unwrap();
    whole.until_status(&json!({"readyReplicas": 2}));
    for (name, protection) in [
        ("kept", Some("Always")),
        ("other", Some("Sometimes")),
        ("plain", None),
    ] {
        let template = json!({"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}});
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
        });
        if let Some(protection) = protection {
            deployment["metadata"]["labels"] = json!({PROTECTION: protection});
        }
        kubectl.create(&deployment).unwrap();
    }
    let keeps = |why: &str| {
        let refusal = kubectl.refused(&["delete", "deployment", "kept"], "").unwrap();
        assert!(refusal.contains(why), "{refusal}");
    };
    keeps("forbidden by ResourcesProtectionDeletion");
    let stopped = Stopped::shared(kubectl.kubeconfig());
    let delete_whole = ["delete", "namespace", "delete-without-manager", "--timeout=300s"];
    kubectl.run(&delete_whole).unwrap();
    let delete_protected = ["delete", "clonesets", "protected"];
    let refusal = kubectl.refused(&delete_protected, "").unwrap();
    assert!(refusal.contains("vcloneset.kb.io"), "{refusal}");
    keeps("failed calling webhook \"vbuiltindeployment.kb.io\"");
    kubectl.run(&["delete", "deployment", "plain", "other"]).unwrap();
    let unprotect = format!("{PROTECTION}-");
    kubectl.run(&["label", "deployment", "kept", &unprotect]).unwrap();
    kubectl.run(&["delete", "deployment", "kept"]).unwrap();
    // The manager that comes back has its own flags, and without the gate it lets go what has the label.
    drop(stopped);
    kubectl.run(&delete_protected).unwrap();
}

/// A definition, with an object once it is served.
const WIDGETS: &str = "widgets.protection.example.com";

fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": WIDGETS, "labels": {PROTECTION: "Cascading"}},
        "spec": {
            "group": "protection.example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    })
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn protected_namespaces_definitions_workloads_and_services_are_kept_until_they_are_empty_or_unprotected() {
    let scenario = scenario_gated("delete-protected-others");
    let kubectl = &scenario.kubectl;

    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx:1"}]}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {PROTECTION: "Cascading"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    kubectl.create(&deployment).unwrap();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {PROTECTION: "Always"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    kubectl.create(&service).unwrap();
    kubectl
        .run(&[
            "wait",
            "--for=condition=Available",
            "deployment/web",
            "--timeout=120s",
        ])
        .unwrap();
    let namespace = kubectl.namespace().unwrap().to_owned();
    let label = format!("{PROTECTION}=Cascading");
    kubectl.run(&["label", "namespace", &namespace, &label]).unwrap();
    kubectl.create(&widgets()).unwrap();
    kubectl
        .run(&[
            "wait",
            "--for=condition=Established",
            &format!("crd/{WIDGETS}"),
            "--timeout=60s",
        ])
        .unwrap();
    let widget =
        json!({"apiVersion": "protection.example.com/v1", "kind": "Widget", "metadata": {"name": "one"}});
    kubectl.create(&widget).unwrap();

    for (arguments, because) in [
        (["delete", "deployment", "web"], "Cascading and replicas 1>0"),
        (["delete", "service", "web"], "Always"),
        (
            ["delete", "namespace", namespace.as_str()],
            "Cascading and active pods 1>0",
        ),
        (["delete", "crd", WIDGETS], "Cascading and active CRs 1>0"),
    ] {
        let refusal = kubectl.refused(&arguments, "").unwrap();
        let expected = format!("forbidden by ResourcesProtectionDeletion for {PROTECTION}={because}");
        assert!(refusal.contains(&expected), "{refusal}");
    }

    kubectl
        .run(&["scale", "deployment", "web", "--replicas=0"])
        .unwrap();
    kubectl.run(&["delete", "deployment", "web"]).unwrap();
    kubectl
        .run(&["label", "service", "web", &format!("{PROTECTION}-")])
        .unwrap();
    kubectl.run(&["delete", "service", "web"]).unwrap();
    kubectl.run(&["delete", "widgets", "one"]).unwrap();
    kubectl.run(&["delete", "crd", WIDGETS]).unwrap();
    kubectl
        .run(&["label", "namespace", &namespace, &format!("{PROTECTION}-")])
        .unwrap();
}
