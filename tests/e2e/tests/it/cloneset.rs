//! CloneSet: creation, scaling and updates.

use kruise_e2e::wait;
use serde_json::json;

use crate::cluster::{LIMIT, container, scenario, text, web};

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_created_set_has_named_labelled_gated_pods_that_become_normal() {
    let scenario = scenario("create");
    scenario.kubectl.apply(&web(5)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 5, "updatedReadyReplicas": 5}));
    wait::until_true("all pods are Normal", LIMIT, || {
        let state = "/metadata/labels/lifecycle.apps.kruise.io~1state";
        Ok(scenario.pods().iter().all(|pod| text(pod, state) == "Normal"))
    })
    .unwrap();
    let revision = text(
        &scenario.kubectl.get("clonesets", "web").unwrap(),
        "/status/updateRevision",
    );
    let pods = scenario.pods();
    assert_eq!(pods.len(), 5);
    for pod in pods {
        let id = text(&pod, "/metadata/labels/apps.kruise.io~1cloneset-instance-id");
        assert_eq!(text(&pod, "/metadata/name"), format!("web-{id}"));
        assert_eq!(id.len(), 5);
        assert_eq!(text(&pod, "/metadata/labels/controller-revision-hash"), revision);
        let gates = pod.pointer("/spec/readinessGates").unwrap().to_string();
        assert!(
            gates.contains("InPlaceUpdateReady") && gates.contains("KruisePodReady"),
            "{gates}"
        );
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn scaling_down_deletes_and_scaling_up_keeps_what_is_there() {
    let scenario = scenario("scale");
    scenario.kubectl.apply(&web(4)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 4}));
    scenario
        .kubectl
        .run(&["scale", "clonesets", "web", "--replicas=2"])
        .unwrap();
    scenario.until_status(&json!({"replicas": 2}));
    let kept = scenario.uids();
    scenario
        .kubectl
        .run(&["scale", "clonesets", "web", "--replicas=3"])
        .unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    let now = scenario.uids();
    assert!(kept.iter().all(|uid| now.contains(uid)), "{kept:?} {now:?}");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_to_delete_names_the_pod_that_is_deleted_and_the_name_is_removed_from_the_spec() {
    let scenario = scenario("pods-to-delete");
    scenario.kubectl.apply(&web(3)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    let victim = scenario.pods().first().cloned().unwrap();
    let name = text(&victim, "/metadata/name");
    scenario.patch(&json!({"spec": {"replicas": 2, "scaleStrategy": {"podsToDelete": [name]}}}));
    scenario.until_status(&json!({"replicas": 2}));
    assert!(!scenario.uids().contains(&text(&victim, "/metadata/uid")));
    wait::until_true("the name leaves the spec", LIMIT, || {
        let set = scenario.kubectl.get("clonesets", "web")?;
        Ok(set.pointer("/spec/scaleStrategy/podsToDelete/0").is_none())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_image_change_keeps_pods_and_addresses_and_a_variable_change_replaces_them() {
    let scenario = scenario("update");
    scenario.kubectl.apply(&web(3)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 3}));
    let identity = || -> Vec<(String, String)> {
        scenario
            .pods()
            .iter()
            .map(|pod| (text(pod, "/metadata/uid"), text(pod, "/status/podIP")))
            .collect()
    };
    let before = identity();
    scenario.patch(&container("nginx:2", "b"));
    scenario.until_status(&json!({"updatedReadyReplicas": 3}));
    assert_eq!(identity(), before);
    let images = scenario
        .pods()
        .iter()
        .map(|pod| text(pod, "/status/containerStatuses/0/image"))
        .collect::<Vec<_>>();
    assert_eq!(images, ["nginx:2"; 3]);

    scenario.patch(&container("nginx:2", "c"));
    scenario.until_status(&json!({"updatedReadyReplicas": 3, "replicas": 3}));
    let old: Vec<String> = before.into_iter().map(|(uid, _)| uid).collect();
    assert!(scenario.uids().iter().all(|uid| !old.contains(uid)));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_partition_holds_the_rollout_and_zero_lets_it_finish() {
    let scenario = scenario("partition");
    scenario.kubectl.apply(&web(5)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 5}));
    let mut patch = container("nginx:2", "b");
    patch["spec"]["updateStrategy"] = json!({"partition": 3});
    scenario.patch(&patch);
    scenario.until_status(&json!({"updatedReadyReplicas": 2, "readyReplicas": 5}));
    wait::observe_for(std::time::Duration::from_secs(3));
    scenario.until_status(&json!({"updatedReplicas": 2}));
    scenario.patch(&json!({"spec": {"updateStrategy": {"partition": 0}}}));
    scenario.until_status(&json!({"updatedReadyReplicas": 5}));
    let set = scenario.kubectl.get("clonesets", "web").unwrap();
    assert_eq!(
        set.pointer("/status/currentRevision"),
        set.pointer("/status/updateRevision")
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_set_written_in_one_version_reads_in_the_other() {
    let scenario = scenario("conversion");
    scenario.kubectl.apply(&web(1)).unwrap();
    let hub = scenario
        .kubectl
        .get("clonesets.v1beta1.apps.kruise.io", "web")
        .unwrap();
    assert_eq!(text(&hub, "/spec/updateStrategy/type"), "RollingUpdate");
    assert_eq!(
        text(&hub, "/spec/updateStrategy/rollingUpdate/podUpdatePolicy"),
        "InPlaceIfPossible"
    );
    assert_eq!(
        hub.pointer("/spec/scaleStrategy/enablePVCReuse"),
        Some(&json!(true))
    );
    let mut newer = web(1);
    newer["apiVersion"] = json!("apps.kruise.io/v1beta1");
    newer["metadata"]["name"] = json!("newer");
    newer["spec"]["updateStrategy"] = json!({});
    scenario.kubectl.apply(&newer).unwrap();
    let older = scenario
        .kubectl
        .get("clonesets.v1alpha1.apps.kruise.io", "newer")
        .unwrap();
    assert_eq!(
        older.pointer("/spec/scaleStrategy/disablePVCReuse"),
        Some(&json!(true))
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_set_that_updates_on_deletion_can_be_changed_through_the_older_version() {
    let scenario = scenario("on-delete");
    let mut set = web(2);
    set["apiVersion"] = json!("apps.kruise.io/v1beta1");
    set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 2}));
    scenario.patch(&container("nginx:2", "b"));
    scenario.until_status(&json!({"updatedReplicas": 0, "readyReplicas": 2}));
    let name = text(scenario.pods().first().unwrap(), "/metadata/name");
    scenario.kubectl.run(&["delete", "pod", &name]).unwrap();
    scenario.until_status(&json!({"updatedReadyReplicas": 1, "readyReplicas": 2}));
    let stored = scenario
        .kubectl
        .get("clonesets.v1beta1.apps.kruise.io", "web")
        .unwrap();
    assert_eq!(text(&stored, "/spec/updateStrategy/type"), "OnDelete");
}
