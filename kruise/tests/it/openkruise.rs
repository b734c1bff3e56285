//! `samples/openkruise.snapshot`: a cluster that OpenKruise 1.8.4 runs, for `kruise playground --bare --load` and
//! `docs/practise.md`.
//!
//! It is made of the fixtures, and compared with the file in the repository;
//! `UPDATE_EXPECT=1 cargo test -p kruise --test it openkruise` writes it. What is from where:
//!
//! | what | from |
//! |---|---|
//! | users' objects with their revisions, claims and pods, in the namespace `shop` | what 1.8.4 stored at rest, with uids, times and statuses |
//! | the ends of init containers | by hand, because the simulated kubelets of the fixtures do not report them |
//! | the Deployment and the ReplicaSet of `injected` | by hand, because the fixtures have their pods only |
//! | the manager, the daemon, rights, webhooks | what the chart 1.8.3 renders, with the image of 1.8.4 |
//! | definitions | those of this build without what 1.8 lacks, as in `older` |
//! | nodes, namespaces, pods of the manager and of the daemon | the embedded API and its nodes |
//!
//! Left out is what is never at rest (a BroadcastJob and an ImagePullJob in progress), what needs a feature gate
//! that the chart leaves off (the ResourceDistribution), and the UnitedDeployment with its StatefulSets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use kruise_plan_test_kit::collection;
use kruise_sim::{Api, Config, Method, Options, Outcome, Request, Response, World};
use serde_json::{Value, json};

use crate::chart::published;
use crate::older::{self, name};
use crate::process::{Playground, Scratch, text};

/// Users' objects: the file of the fixture, the group and the resource.
const STORED: [(&str, &str, &str); 14] = [
    ("advancedcronjobs", "apps.kruise.io", "advancedcronjobs"),
    ("clonesets.v1alpha1.apps.kruise.io", "apps.kruise.io", "clonesets"),
    ("controllerrevisions", "apps", "controllerrevisions"),
    ("daemonsets.apps.kruise.io", "apps.kruise.io", "daemonsets"),
    ("nodeimages", "apps.kruise.io", "nodeimages"),
    ("nodepodprobes", "apps.kruise.io", "nodepodprobes"),
    ("persistentvolumeclaims", "", "persistentvolumeclaims"),
    ("podprobemarkers", "apps.kruise.io", "podprobemarkers"),
    ("pods", "", "pods"),
    (
        "podunavailablebudgets",
        "policy.kruise.io",
        "podunavailablebudgets",
    ),
    (
        "sidecarsets.v1alpha1.apps.kruise.io",
        "apps.kruise.io",
        "sidecarsets",
    ),
    ("statefulsets.apps.kruise.io", "apps.kruise.io", "statefulsets"),
    ("workloadspreads", "apps.kruise.io", "workloadspreads"),
    // Not of the fixtures: see `injected`.
    ("", "apps", "deployments"),
];
/// Objects of these, and what they own, are left out.
const LEFT_OUT: [&str; 4] = ["bcj", "united", "united-a-nwwwk", "united-b-ffq2z"];
/// A little before the users' objects were created.
const BEGIN: &str = "2026-11-21T03:50:00Z";
const CREATED: &str = "2026-11-21T03:56:37Z";
const SYSTEM: &str = "/apis/apps/v1/namespaces/kruise-system";

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/openkruise.snapshot")
}

/// The objects of a file of the fixture, in the namespace `shop` and on nodes of a playground.
fn stored(file: &str) -> Vec<Value> {
    let path = format!("../fixtures/upstream/1.8.4/rest-{file}.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut list: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let owner = |object: &Value| {
        let owner = object.pointer("/metadata/ownerReferences/0/name");
        owner.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    list.retain(|object| !LEFT_OUT.contains(&name(object)) && !LEFT_OUT.contains(&owner(object).as_str()));
    list.iter_mut().for_each(moved);
    for object in &mut list {
        match file {
            // The job that asked for images is left out.
            "nodeimages" => object["spec"] = json!({}),
            "nodepodprobes" => addressed(object),
            "pods" => initialized(object),
            // It would be due on New Year's Day.
            "advancedcronjobs" => object["spec"]["paused"] = json!(true),
            _ => {}
        }
    }
    list
}

/// Reports that the init containers of a pod have ended: the kubelets of the fixtures do not report these containers.
fn initialized(pod: &mut Value) {
    let containers = pod
        .pointer("/spec/initContainers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let since = &pod["status"]["startTime"];
    let ended = containers.map(|container| {
        let id = format!("fake://{}-{}-0", pod["metadata"]["uid"].as_str().unwrap(), container["name"].as_str().unwrap());
        let state = json!({"terminated": {
            "containerID": id, "exitCode": 0, "finishedAt": since, "reason": "Completed", "startedAt": since,
        }});
        json!({
            "containerID": id, "image": container["image"], "imageID": format!("fake://{}", container["image"].as_str().unwrap()),
            "lastState": {}, "name": container["name"], "ready": true, "restartCount": 0, "started": false, "state": state,
        })
    });
    let ended: Vec<Value> = ended.collect();
    if !ended.is_empty() {
        pod["status"]["initContainerStatuses"] = json!(ended);
    }
}

/// Lets the probes of a node name the addresses of its pods: one was stored before its pod got another one.
fn addressed(probes: &mut Value) {
    let pods = stored("pods");
    let probes = probes
        .pointer_mut("/spec/podProbes")
        .and_then(Value::as_array_mut);
    for probe in probes.into_iter().flatten() {
        let pod = pods
            .iter()
            .find(|pod| pod["metadata"]["uid"] == probe["uid"])
            .unwrap();
        probe["IP"] = pod["status"]["podIP"].clone();
    }
}

/// Other names of the namespace and of nodes, wherever they stand.
fn moved(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if key == "namespace" && field == "default" {
                    *field = json!("shop");
                }
                moved(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(moved),
        Value::String(text) => {
            if let Some(number) = text
                .strip_prefix("kwok-")
                .and_then(|rest| rest.parse::<u8>().ok())
            {
                *text = format!("node-{}", number + 1);
            }
            *text = text.replace("\"namespace\":\"default\"", "\"namespace\":\"shop\"");
        }
        _ => {}
    }
}

/// The Deployment that the pods with sidecars are of, and its ReplicaSet.
fn injected() -> [(&'static str, Value); 2] {
    let set = "45ec1321-545c-4a0e-bae3-79495bfad7e9";
    let deployment = "0b6f6f5e-6f0c-4a53-9f0e-2d3f6f1c7a11";
    let spec = json!({
        "containers": [{
            "image": "nginx:1.25", "imagePullPolicy": "IfNotPresent", "name": "main", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "volumeMounts": [{"mountPath": "/web", "name": "web"}],
        }],
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
        "securityContext": {}, "terminationGracePeriodSeconds": 30,
        "volumes": [{"emptyDir": {}, "name": "web"}],
    });
    let metadata = |name: &str, uid: &str| {
        json!({
            "annotations": {"deployment.kubernetes.io/revision": "1"}, "creationTimestamp": CREATED, "generation": 1,
            "name": name, "namespace": "shop", "uid": uid,
        })
    };
    let counts = json!({
        "availableReplicas": 2, "observedGeneration": 1, "readyReplicas": 2, "replicas": 2,
    });
    let labels = json!({"app": "injected", "inject": "yes"});
    let hashed = json!({"app": "injected", "inject": "yes", "pod-template-hash": "55dd89894b"});
    let mut owned = metadata("injected-55dd89894b", set);
    owned["labels"] = hashed.clone();
    owned["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true, "kind": "Deployment", "name": "injected",
        "uid": deployment,
    }]);
    let mut reported = counts.clone();
    reported["updatedReplicas"] = json!(2);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("injected", deployment), "status": reported,
        "spec": {
            "progressDeadlineSeconds": 600, "replicas": 2, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "injected"}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    });
    let mut reported = counts;
    reported["fullyLabeledReplicas"] = json!(2);
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": owned, "status": reported,
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "injected", "pod-template-hash": "55dd89894b"}},
            "template": {"metadata": {"labels": hashed}, "spec": spec},
        },
    });
    [("deployments", deployment), ("replicasets", set)]
}

fn send(world: &mut World, method: Method, path: &str, body: &Value) -> Response {
    let merge = if method == Method::Patch {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    match world.handle(&Request::new(method, path, Some(body)).content_type(merge)) {
        Outcome::Respond(response) => response,
        other => panic!("{path}: {other:?}"),
    }
}

fn create(world: &mut World, path: &str, object: &Value) -> Value {
    let response = send(world, Method::Post, path, object);
    assert_eq!(response.code, 201, "{path}: {}", response.value());
    let now = world.now();
    world.advance(now);
    response.value()
}

/// What a chart of OpenKruise installs with its own values, without its hooks.
pub(crate) fn installed(chart: &str) -> Vec<Value> {
    let mut objects = published(chart).remove("default").unwrap().objects;
    objects.retain(|object| object.pointer("/metadata/annotations/helm.sh~1hook").is_none());
    objects
}

/// Sorts objects as they can be created: webhooks that nobody answers come last.
pub(crate) fn in_order(objects: &mut [Value]) {
    objects.sort_by_key(|object| match object["kind"].as_str().unwrap() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        kind if kind.ends_with("WebhookConfiguration") => 3,
        _ => 2,
    });
}

/// What the chart installs, with the images of 1.8.4.
fn of_1_8_4() -> Vec<Value> {
    let text = serde_json::to_string(&installed("1.8.3")).unwrap();
    let mut objects: Vec<Value> = serde_json::from_str(&text.replace("v1.8.3", "v1.8.4")).unwrap();
    in_order(&mut objects);
    objects
}

/// A cluster with nodes and OpenKruise, and no objects of users.
fn world() -> World {
    let begin: Timestamp = BEGIN.parse().unwrap();
    let mut world = World::new(&Config::default(), &Options::default(), begin).unwrap();
    for image in stored("nodeimages") {
        let metadata = json!({"name": name(&image), "labels": image["metadata"]["labels"]});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata});
        create(&mut world, "/api/v1/nodes", &node);
    }
    for definition in older::definitions_by_service("1.8") {
        create(&mut world, older::DEFINITIONS, &definition);
    }
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    create(&mut world, "/api/v1/namespaces", &shop);
    for object in of_1_8_4() {
        let created = create(&mut world, &collection(&object), &object);
        match object["kind"].as_str().unwrap() {
            "DaemonSet" => daemons(&mut world, &created),
            "MutatingWebhookConfiguration" => {
                let until = world.now() + Duration::from_mins(2);
                world.rest(until);
            }
            _ => {}
        }
    }
    world
}

/// The pods of a DaemonSet, which the embedded API only stores, and its status.
fn daemons(world: &mut World, set: &Value) {
    let nodes = stored("nodeimages");
    for node in &nodes {
        let mut pod = set["spec"]["template"].clone();
        pod["metadata"]["name"] = json!(format!("kruise-daemon-{}", name(node)));
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true, "kind": "DaemonSet",
            "name": name(set), "uid": set["metadata"]["uid"],
        }]);
        pod["spec"]["nodeName"] = json!(name(node));
        create(world, "/api/v1/namespaces/kruise-system/pods", &pod);
    }
    let all = nodes.len();
    let status = json!({"status": {
        "currentNumberScheduled": all, "desiredNumberScheduled": all, "numberAvailable": all, "numberMisscheduled": 0,
        "numberReady": all, "observedGeneration": 1, "updatedNumberScheduled": all,
    }});
    let path = format!("{SYSTEM}/daemonsets/{}/status", name(set));
    let response = send(world, Method::Patch, &path, &status);
    assert_eq!(response.code, 200, "{}", response.value());
}

/// The text of the snapshot.
fn snapshot() -> String {
    let text = world().api().snapshot();
    let (first, system) = text.split_once('\n').unwrap();
    let mut head: Value = serde_json::from_str(first).unwrap();
    let mut revision = head["revision"].as_u64().unwrap();
    let mut lines: Vec<String> = system.lines().map(str::to_owned).collect();
    let users = STORED.into_iter().flat_map(|(file, group, resource)| match file {
        "" => injected()
            .map(|(resource, object)| (group, resource, object))
            .to_vec(),
        _ => stored(file)
            .into_iter()
            .map(|object| (group, resource, object))
            .collect(),
    });
    for (group, resource, mut object) in users {
        revision += 1;
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        lines.push(json!({"group": group, "resource": resource, "object": object}).to_string());
    }
    head["revision"] = json!(revision);
    head["objects"] = json!(lines.len());
    let text = format!("{head}\n{}\n", lines.join("\n"));
    // In the order in which a playground writes it.
    Api::restore(&Config::default(), &text).unwrap().snapshot()
}

#[test]
fn the_sample_is_up_to_date() {
    let made = snapshot();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(sample(), &made).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(sample()).unwrap();
    for (number, (kept, made)) in kept.lines().zip(made.lines()).enumerate() {
        let line = number + 1;
        assert_eq!(
            kept, made,
            "line {line}: UPDATE_EXPECT=1 cargo test -p kruise --test it openkruise"
        );
    }
    assert_eq!(kept.lines().count(), made.lines().count());
    assert!(kept.len() < 3 << 19, "{} bytes", kept.len());
}

/// The pods of all namespaces, as they are stored.
fn pods(playground: &Playground) -> Vec<Value> {
    playground.get("/api/v1/pods")["items"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_bare_playground_goes_on_with_a_snapshot_to_which_nothing_is_added_and_saves_what_became_of_it() {
    let scratch = Scratch::new("bare-snapshot");
    let (sample, saved) = (sample(), scratch.file("snapshot"));
    let load = [
        "--bare",
        "--fast",
        "--load",
        text(&sample),
        "--save",
        text(&saved),
    ];
    let first = Playground::start_until_written(&scratch, scratch.file("first.kubeconfig"), &load);
    let api = Api::restore(&Config::default(), &std::fs::read_to_string(&sample).unwrap()).unwrap();
    let kept = pods(&first);
    assert_eq!(kept.len(), api.count("", "pods"));
    let uids =
        |pods: &[Value]| -> Vec<Value> { pods.iter().map(|pod| pod["metadata"]["uid"].clone()).collect() };
    let definitions = first.get(older::DEFINITIONS)["items"].as_array().unwrap().len();
    assert_eq!(definitions, 18, "nothing is added");
    // Its nodes run what is created from now on, too.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": {
        "containers": [{"name": "main", "image": "web:1"}]}});
    let path = "/api/v1/namespaces/kruise-system/pods";
    let (code, answer) = first.request("POST", path, "application/json", &pod.to_string());
    assert_eq!(code, 201, "{answer}");
    first.until("the new pod runs", |first| {
        (first.get(&format!("{path}/new"))["status"]["phase"] == "Running").then_some(())
    });
    let before = pods(&first);
    assert_eq!(first.end("INT"), Some(0));

    let load = ["--bare", "--fast", "--load", text(&saved)];
    let second = Playground::start_until_written(&scratch, scratch.file("second.kubeconfig"), &load);
    let after = pods(&second);
    assert_eq!(uids(&after), uids(&before));
    let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].clone();
    assert!(after.iter().all(|pod| restarts(pod) == 0), "{after:?}");
    assert_eq!(after.len(), kept.len() + 1);
}
