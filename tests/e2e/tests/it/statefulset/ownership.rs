//! Pods that become the set's own, and pods that are not.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{SETS, all_in_service, delete_pod, names, parallel, patch, pods, uids, until, until_status};
use crate::cluster::{LIMIT, scenario, text};

fn owner(pod: &Value) -> String {
    text(pod, "/metadata/ownerReferences/0/uid")
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn orphans_are_adopted_and_a_foreign_pod_with_a_name_of_the_set_is_waited_for() {
    let scenario = scenario("statefulset-orphans");
    scenario.kubectl.apply(&parallel(3)).unwrap();
    until_status(&scenario, &json!({"readyReplicas": 3}));
    let before = uids(&pods(&scenario));
    let delete = ["delete", "asts", "db", "--cascade=orphan"];
    scenario.kubectl.run(&delete).unwrap();
    until(&scenario, "pods", "nobody owns the pods", |pods| {
        pods.values().all(|pod| owner(pod).is_empty())
    });
    scenario.kubectl.apply(&parallel(3)).unwrap();
    let set = text(&scenario.kubectl.get(SETS, "db").unwrap(), "/metadata/uid");
    until(&scenario, "pods", "the new set owns them", |pods| {
        pods.len() == 3 && pods.values().all(|pod| owner(pod) == set)
    });
    until_status(
        &scenario,
        &json!({"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3}),
    );
    assert_eq!(uids(&pods(&scenario)), before);
    let revisions = scenario.kubectl.list("controllerrevisions", "").unwrap();
    assert_eq!(revisions.len(), 1, "{revisions:?}");

    let label = ["label", "--overwrite", "pod", "db-1", "app=other"];
    scenario.kubectl.run(&label).unwrap();
    wait::until_true("the pod that does not match is released", LIMIT, || {
        Ok(owner(&scenario.kubectl.get("pod", "db-1")?).is_empty())
    })
    .unwrap();
    wait::until_true("an event names the pod that is in the way", LIMIT, || {
        let events = scenario.kubectl.list("events", "")?;
        Ok(events.iter().any(|event| {
            event["type"] == "Warning"
                && event["reason"] == "FailedCreate"
                && event["involvedObject"]["uid"] == set.as_str()
                && text(event, "/message").contains("db-1")
        }))
    })
    .unwrap();
    // Others go on.
    patch(&scenario, &json!({"spec": {"replicas": 4}}));
    until(&scenario, "pods", "db-3 is there", |pods| {
        names(pods) == ["db-0", "db-2", "db-3"] && all_in_service(pods)
    });
    let foreign = scenario.kubectl.get("pod", "db-1").unwrap();
    assert_eq!(text(&foreign, "/metadata/uid"), before["db-1"], "it lives on");
    delete_pod(&scenario, "db-1");
    until_status(&scenario, &json!({"replicas": 4, "readyReplicas": 4}));
    assert_eq!(names(&pods(&scenario)), ["db-0", "db-1", "db-2", "db-3"]);
}

/// The API server writes `IfNotPresent` for the image with a tag of the one kind, and the webhook `Always` for the
/// other.
#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_that_a_statefulset_of_kubernetes_leaves_are_taken_over_and_not_recreated() {
    let scenario = scenario("statefulset-of-kubernetes");
    let mut taken = parallel(2);
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}});
    taken["spec"]["updateStrategy"] = strategy;
    let pod = taken["spec"]["template"]["spec"].as_object_mut().unwrap();
    pod.remove("readinessGates");
    pod.insert("serviceAccountName".into(), json!("default"));
    let mut builtin = taken.clone();
    builtin["apiVersion"] = json!("apps/v1");
    builtin["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
    scenario.kubectl.apply(&builtin).unwrap();
    until(&scenario, "pods", "both pods are there", |pods| {
        pods.len() == 2 && all_in_service(pods)
    });
    let before = uids(&pods(&scenario));
    let delete = ["delete", "statefulsets.apps", "db", "--cascade=orphan"];
    scenario.kubectl.run(&delete).unwrap();
    until(&scenario, "pods", "nobody owns the pods", |pods| {
        pods.values().all(|pod| owner(pod).is_empty())
    });
    scenario.kubectl.apply(&taken).unwrap();
    until_status(
        &scenario,
        &json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}),
    );
    assert_eq!(uids(&pods(&scenario)), before);
    let revisions = scenario.kubectl.list("controllerrevisions", "").unwrap();
    assert_eq!(revisions.len(), 1, "{revisions:?}");
}
