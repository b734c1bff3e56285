//! Objects that no fixture has. They are at rest: OpenKruise would write nothing for them either.

use serde_json::{Value, json};

use super::copy::{Copy, INJECT, metadata};
use super::definitions;
use super::files::uid_of_copy;

/// The label of nodes that a PersistentPodState records.
const ZONE: &str = "topology.kubernetes.io/zone";

/// A node that is ready, with the labels that its NodeImage has.
pub(super) fn node(number: usize, image: &Value, created: &str) -> Value {
    let uid = format!("00000000-0000-4000-8001-{number:012x}");
    let mut metadata = metadata(("", image["metadata"]["name"].as_str().unwrap()), &uid, created);
    metadata["labels"] = image["metadata"]["labels"].clone();
    metadata.as_object_mut().unwrap().remove("generation");
    let resources = json!({"cpu": "32", "memory": "256Gi", "pods": "1000"});
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
        "lastHeartbeatTime": created, "lastTransitionTime": created});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready],
            "nodeInfo": {"kubeletVersion": "v1.34.0"}}})
}

/// The objects of one namespace.
pub(super) fn objects(version: &str, copy: &Copy<'_>) -> Vec<Value> {
    let objects = [
        (1, "ImageListPullJob", "pull-all", image_list_pull_job(copy)),
        (2, "EphemeralJob", "look", ephemeral_job(copy)),
        (
            3,
            "ContainerRecreateRequest",
            "restart-asts-0",
            container_recreate_request(copy),
        ),
        (
            4,
            "PersistentPodState",
            "asts",
            persistent_pod_state(version, copy),
        ),
    ];
    let objects = objects.into_iter().map(|(number, kind, name, mut object)| {
        let uid = uid_of_copy(&format!("00000000-0000-4000-8002-{number:012x}"), copy.number);
        let mut of_object = metadata((&copy.namespace, name), &uid, &copy.files.newest);
        if let Some(labels) = object.as_object_mut().unwrap().remove("labels") {
            of_object["labels"] = labels;
        }
        object["metadata"] = of_object;
        object["apiVersion"] = json!(definitions::api_version(version, kind));
        object["kind"] = json!(kind);
        object
    });
    objects.chain([replica_set(copy)]).collect()
}

/// A list whose images are pulled.
fn image_list_pull_job(copy: &Copy<'_>) -> Value {
    let time = &copy.files.newest;
    json!({
        "spec": {"images": ["nginx:1.25"], "parallelism": 2, "selector": {"names": ["kwok-0", "kwok-1"]},
            "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3}, "completionPolicy": {"type": "Always"}},
        "status": {"desired": 1, "active": 0, "completed": 1, "succeeded": 1, "startTime": time, "completionTime": time},
    })
}

/// A job whose container has ended.
fn ephemeral_job(copy: &Copy<'_>) -> Value {
    let time = &copy.files.newest;
    let container = json!({"name": "look", "image": "busybox:1.35", "imagePullPolicy": "IfNotPresent", "targetContainerName": "main",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
    json!({
        "spec": {"selector": {"matchLabels": {"app": "asts"}}, "template": {"ephemeralContainers": [container]},
            "replicas": 1, "parallelism": 1, "ttlSecondsAfterFinished": 86_400},
        "status": {"phase": "Succeeded", "match": 1, "succeeded": 1, "running": 0, "waiting": 0, "failed": 0, "startTime": time,
            "completionTime": time},
    })
}

/// A request that has been carried out.
fn container_recreate_request(copy: &Copy<'_>) -> Value {
    let pod = pods(copy)
        .find(|pod| pod["metadata"]["name"] == "asts-0")
        .unwrap();
    let uid = copy.files.renewed(&pod["metadata"]["uid"], copy.number);
    json!({
        "labels": {"crr.apps.kruise.io/pod-uid": uid, "crr.apps.kruise.io/node-name": pod["spec"]["nodeName"]},
        "spec": {"podName": "asts-0", "containers": [{"name": "main"}], "strategy": {"failurePolicy": "Fail"}},
        "status": {"phase": "Completed", "completionTime": copy.files.newest,
            "containerRecreateStates": [{"name": "main", "phase": "Succeeded"}]},
    })
}

/// Where the pods of the StatefulSet are.
fn persistent_pod_state(version: &str, copy: &Copy<'_>) -> Value {
    let states = pods(copy)
        .filter(|pod| pod["metadata"]["labels"]["app"] == "asts")
        .map(|pod| {
            let node = &pod["spec"]["nodeName"];
            let image = copy
                .files
                .of_kind("NodeImage")
                .find(|image| image["metadata"]["name"] == *node)
                .unwrap();
            let state =
                json!({"nodeName": node, "nodeTopologyLabels": {ZONE: image["metadata"]["labels"][ZONE]}});
            (pod["metadata"]["name"].as_str().unwrap().to_owned(), state)
        });
    let states: serde_json::Map<String, Value> = states.collect();
    let keys = if definitions::is_older(version, "PersistentPodState") {
        "nodeTopologyKeys"
    } else {
        "keys"
    };
    json!({
        "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "asts"},
            "persistentPodStateRetentionPolicy": "WhenScaled", "requiredPersistentTopology": {keys: [ZONE]}},
        "status": {"observedGeneration": 1, "podStates": states},
    })
}

/// The ReplicaSet of the pods with sidecars. Their fixtures name it.
fn replica_set(copy: &Copy<'_>) -> Value {
    let of_set: Vec<&Value> = pods(copy)
        .filter(|pod| pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet")
        .collect();
    let pod = &of_set[0]["metadata"];
    let owner = &pod["ownerReferences"][0];
    let uid = copy.files.renewed(&owner["uid"], copy.number);
    let name = owner["name"].as_str().unwrap();
    let labels =
        json!({"app": pod["labels"]["app"], "pod-template-hash": pod["labels"]["pod-template-hash"]});
    let mut of_pods = labels.clone();
    of_pods[INJECT] = json!(copy.inject());
    let mut metadata = metadata((&copy.namespace, name), uid.as_str().unwrap(), &copy.files.newest);
    metadata["labels"] = labels.clone();
    let number = of_set.len();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata,
        "spec": {"replicas": number, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": of_pods}, "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}}},
        "status": {"replicas": number, "fullyLabeledReplicas": number, "readyReplicas": number, "availableReplicas": number,
            "observedGeneration": 1},
    })
}

fn pods<'c>(copy: &'c Copy<'_>) -> impl Iterator<Item = &'c Value> {
    copy.files.of_kind("Pod")
}
