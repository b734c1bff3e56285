//! A pod in one line: name, revision letter, and words for what is special about it; without any it is available.

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::revision;
use serde_json::{Value, json};

use crate::{set_condition, strategic, text};

/// What a revision letter stands for.
pub struct Labelled {
    /// Template of the pod.
    pub template: Value,
    /// Name of the revision.
    pub revision: String,
}

/// Reads one line: `NAME REVISION WORD…`.
pub fn pod(line: &str, labelled: impl Fn(&str) -> Labelled, owner: &Value, now: Timestamp) -> Value {
    let mut words = line.split_whitespace();
    let (name, letter) = (words.next().unwrap(), words.next().unwrap());
    let Labelled { template, revision } = labelled(letter);
    let ago = |seconds: i64| text(now - SignedDuration::from_secs(seconds));
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "9",
                     "creationTimestamp": ago(3600), "ownerReferences": [owner]},
        "spec": {"nodeName": "a1", "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]},
        "status": {"phase": "Running", "conditions": []},
    });
    strategic(&mut pod, &template);
    let hash = revision::short_hash(&revision);
    pod["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
    pod["metadata"]["labels"]["pod-template-hash"] = json!(hash);
    pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] = json!("Normal");
    let containers = pod["spec"]["containers"].as_array().unwrap();
    let statuses: Vec<Value> = containers
        .iter()
        .map(|c| json!({"name": c["name"], "image": c["image"], "imageID": format!("id-of-{}", c["image"].as_str().unwrap()),
                        "containerID": "cri://1", "ready": true, "restartCount": 0, "resources": c["resources"]}))
        .collect();
    pod["status"]["containerStatuses"] = json!(statuses);
    for kind in ["Ready", "ContainersReady", "InPlaceUpdateReady", "KruisePodReady"] {
        set_condition(&mut pod, kind, "True", &ago(3000));
    }
    for word in words {
        describe(&mut pod, word, hash, &ago);
    }
    pod
}

/// Something happens to a pod, in the words that [`pod`] reads.
pub fn change<'w>(pod: &mut Value, words: impl Iterator<Item = &'w str>, now: Timestamp) {
    let ago = |seconds: i64| text(now - SignedDuration::from_secs(seconds));
    let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
    let hash = revision::short_hash(revision.as_str().unwrap_or_default());
    for word in words {
        describe(pod, word, hash, &ago);
    }
}

fn describe(pod: &mut Value, word: &str, hash: &str, ago: &dyn Fn(i64) -> String) {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    let state = "lifecycle.apps.kruise.io/state";
    match key {
        "unready" => set_condition(pod, "Ready", "False", &ago(60)),
        // Since so long; it was updated in place 3000 seconds ago.
        "unreadySeconds" => set_condition(pod, "Ready", "False", &ago(value.parse().unwrap())),
        "new" | "scheduled" => {
            pod["status"] = json!({"phase": "Pending"});
            pod["metadata"]["labels"][state] = json!("PreparingNormal");
            if key == "new" {
                pod["spec"]["nodeName"] = Value::Null;
            }
        }
        // It waits for a node.
        "pending" => {
            pod["status"] = json!({"phase": "Pending"});
            pod["spec"]["nodeName"] = Value::Null;
        }
        // It waits for one, and the scheduler finds none.
        "unschedulable" => {
            let message = "0/2 nodes are available";
            let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
            strategic(pod, &json!({"status": {"conditions": [condition]}}));
        }
        "starting" => {
            set_condition(pod, "Ready", "False", &ago(2));
            pod["status"]["containerStatuses"][0]["imageID"] = json!("");
        }
        "terminating" => pod["metadata"]["deletionTimestamp"] = json!(ago(1)),
        "overdue" => pod["metadata"]["deletionTimestamp"] = json!(ago(31)),
        "nobodys" => pod["metadata"]["ownerReferences"] = json!([]),
        "failed" => pod["status"]["phase"] = json!("Failed"),
        "succeeded" => pod["status"]["phase"] = json!("Succeeded"),
        // Made so many seconds ago.
        "age" => pod["metadata"]["creationTimestamp"] = json!(ago(value.parse().unwrap())),
        "specified" => pod["metadata"]["labels"]["apps.kruise.io/specified-delete"] = json!("true"),
        "short" => pod["metadata"]["labels"]["controller-revision-hash"] = json!(hash),
        "marked" => set_condition(pod, "InPlaceUpdateReady", "False", &ago(10)),
        // Out of service by these keys of ours, or of somebody else.
        "held" => hold(pod, value, &ago(10)),
        "state" => pod["metadata"]["labels"][state] = json!(value),
        "node" => pod["spec"]["nodeName"] = json!(value),
        "readySeconds" => set_condition(pod, "Ready", "True", &ago(value.parse().unwrap())),
        "restarts" => {
            pod["status"]["containerStatuses"][0]["restartCount"] = json!(value.parse::<i32>().unwrap());
        }
        "cost" => pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = json!(value),
        // It asks for a node with this label.
        "selects" => {
            let (label, value) = value.split_once(':').unwrap();
            pod["spec"]["nodeSelector"][label] = json!(value);
        }
        // A service account has added this one.
        "pullSecret" => strategic(pod, &json!({"spec": {"imagePullSecrets": [{"name": value}]}})),
        "finalizer" => strategic(pod, &json!({"metadata": {"finalizers": [value]}})),
        "runs" => {
            pod["status"]["containerStatuses"][0]["image"] = json!(value);
            pod["status"]["containerStatuses"][0]["imageID"] = json!(format!("id-of-{value}"));
        }
        // It has this image, whatever its revision asks for.
        "image" => {
            pod["spec"]["containers"][0]["image"] = json!(value);
            describe(pod, &format!("runs={value}"), hash, ago);
        }
        // The record of an update to its revision that has written the image.
        "record" => {
            let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
            let state = json!({"revision": revision, "updateTimestamp": ago(600), "updateImages": true,
                               "lastContainerStatuses": {"main": {"imageID": "id-of-web:1"}},
                               "containerBatchesRecord": [{"timestamp": ago(600), "containers": ["main"]}]});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        // A sidecar of this SidecarSet has taken the place of its container.
        "sidecar" => {
            let entry = json!({"hash": "x", "sidecarSetName": value, "sidecarList": ["main"], "updateTimestamp": ago(3600)});
            let annotations = &mut pod["metadata"]["annotations"];
            annotations["kruise.io/sidecarset-injected-list"] = json!(value);
            annotations["kruise.io/sidecarset-hash"] = json!(json!({value: entry}).to_string());
        }
        // Its container ends again and again.
        "failing" => {
            set_condition(pod, "Ready", "False", &ago(60));
            pod["status"]["containerStatuses"][0]["ready"] = json!(false);
            pod["status"]["containerStatuses"][0]["state"] =
                json!({"waiting": {"reason": "CrashLoopBackOff"}});
        }
        // An update under way: the image id that the container had when it was changed.
        "from" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "updateImages": true,
                               "lastContainerStatuses": {"main": {"imageID": format!("id-of-{value}")}}});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        "environment" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "updateEnvFromMetadata": true, "lastContainerStatuses": null});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        // Its containers were asked to have other resources.
        "resizing" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "lastContainerStatuses": null, "updateResources": true});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        // What a container has of a processor.
        "given" => pod["status"]["containerStatuses"][0]["resources"] = json!({"limits": {"cpu": value}}),
        // What a container asks for, and who asked by the resize endpoint.
        "asks" => {
            let (cpu, manager) = value.split_once('/').unwrap();
            pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(cpu);
            pod["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] = json!(cpu);
            wrote(pod, manager, "main", "limits/cpu");
        }
        // What it requests besides, and who asked for that, if not who made the pod.
        "requested" => {
            let (cpu, manager) = value.split_once('/').unwrap_or((value, ""));
            for at in [
                "/spec/containers/0/resources",
                "/status/containerStatuses/0/resources",
            ] {
                pod.pointer_mut(at).unwrap()["requests"]["cpu"] = json!(cpu);
            }
            if !manager.is_empty() {
                wrote(pod, manager, "main", "requests/cpu");
            }
        }
        // It came to its revision with other resources, or was given some back since.
        "came" | "gaveBack" => {
            let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
            let mut state = json!({"revision": revision, "updateTimestamp": ago(600), "lastContainerStatuses": null, "updateResources": true});
            if key == "gaveBack" {
                state["givenBack"] = json!(true);
            }
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        // What its node says to that.
        "refused" => {
            let (reason, message) = (value, format!("node-says-{value}"));
            let condition =
                json!({"type": "PodResizePending", "status": "True", "reason": reason, "message": message});
            strategic(pod, &json!({"status": {"conditions": [condition]}}));
        }
        // The first batch has its resources, the container `log` is to follow.
        "nextLimit" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "updateResources": true, "lastContainerStatuses": null,
                               "nextContainerResources": {"log": {"limits": {"cpu": value}}},
                               "preCheckBeforeNext": {"containersRequiredReady": ["main"]}});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
            let before = json!({"limits": {"cpu": "1"}});
            pod["spec"]["containers"][1]["resources"] = before.clone();
            pod["status"]["containerStatuses"][1]["resources"] = before;
        }
        // In a grace period of ten seconds on the way to this image, since five seconds or since a minute.
        "grace" => grace(pod, value, &ago(5)),
        "graceOver" => grace(pod, value, &ago(60)),
        // The same on the way to this share of a processor, before which nothing was scheduled.
        "graceOverLimit" => {
            let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
            let state = json!({"revision": revision, "updateTimestamp": ago(60), "lastContainerStatuses": null, "updateResources": true});
            let limits = json!({"main": {"limits": {"cpu": value}}});
            let grace = json!({"revision": revision, "containerResources": limits, "graceSeconds": 10});
            for (key, value) in [("state", state), ("grace", grace)] {
                pod["metadata"]["annotations"][format!("apps.kruise.io/inplace-update-{key}")] =
                    json!(value.to_string());
            }
            pod["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "99"}});
        }
        // The first batch is changed, this image of the container `log` is to follow.
        "next" => {
            let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
            let state = json!({"revision": revision, "updateTimestamp": ago(5), "updateImages": true,
                               "lastContainerStatuses": {"main": {"imageID": "id-of-web:1"}},
                               "nextContainerImages": {"log": value},
                               "preCheckBeforeNext": {"containersRequiredReady": ["main"]}});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
            pod["spec"]["containers"][1]["image"] = json!("log:1");
        }
        // The budget that protects it.
        "budget" => pod["metadata"]["annotations"]["pub.kruise.io/related-pub"] = json!(value),
        "exempt" => pod["metadata"]["annotations"]["pub.kruise.io/no-protect"] = json!("true"),
        "mainUnready" => pod["status"]["containerStatuses"][0]["ready"] = json!(false),
        "garbage" => pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!("{"),
        "label" => {
            let (key, value) = value.split_once(':').unwrap();
            pod["metadata"]["labels"][key] = json!(value);
        }
        "unlabel" => drop(pod["metadata"]["labels"].as_object_mut().unwrap().remove(value)),
        other => panic!("a pod that is {other}?"),
    }
}

fn hold(pod: &mut Value, keys: &str, since: &str) {
    let hold = |key: &str| match key {
        "restart" => json!({"userAgent": "ContainerRecreateRequest", "key": "shop/restart"}),
        own => json!({"userAgent": "Lifecycle", "key": own}),
    };
    let holds: Vec<Value> = keys.split(',').map(hold).collect();
    set_condition(pod, "KruisePodReady", "False", since);
    set_condition(pod, "Ready", "False", since);
    let message = json!({"type": "KruisePodReady", "message": json!(holds).to_string()});
    strategic(pod, &json!({"status": {"conditions": [message]}}));
}

fn grace(pod: &mut Value, image: &str, since: &str) {
    let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
    let state = json!({"revision": revision, "updateTimestamp": since, "lastContainerStatuses": null, "updateImages": true});
    let grace = json!({"revision": revision, "containerImages": {"main": image}, "graceSeconds": 10});
    for (key, value) in [("state", state), ("grace", grace)] {
        pod["metadata"]["annotations"][format!("apps.kruise.io/inplace-update-{key}")] =
            json!(value.to_string());
    }
    pod["spec"]["containers"][0]["image"] = json!("web:1");
    pod["status"]["containerStatuses"][0]["image"] = json!("web:1");
    pod["status"]["containerStatuses"][0]["imageID"] = json!("id-of-web:1");
}

/// Notes who last wrote an amount of a container by the resize endpoint.
pub fn wrote(pod: &mut Value, manager: &str, container: &str, place: &str) {
    let (list, resource) = place.split_once('/').unwrap();
    let key = format!("k:{}", json!({"name": container}));
    if !pod["metadata"]["managedFields"].is_array() {
        pod["metadata"]["managedFields"] = json!([]);
    }
    let entries = pod["metadata"]["managedFields"].as_array_mut().unwrap();
    let (list, resource) = (format!("f:{list}"), format!("f:{resource}"));
    for entry in entries.iter_mut() {
        let lists = &mut entry["fieldsV1"]["f:spec"]["f:containers"][&key]["f:resources"];
        if let Some(fields) = lists.get_mut(&list).and_then(Value::as_object_mut) {
            fields.remove(&resource);
        }
    }
    let found = entries.iter().position(|entry| entry["manager"] == manager);
    let index = found.unwrap_or_else(|| {
        entries.push(json!({"manager": manager, "operation": "Update", "subresource": "resize"}));
        entries.len() - 1
    });
    entries[index]["fieldsV1"]["f:spec"]["f:containers"][&key]["f:resources"][&list][&resource] = json!({});
}
