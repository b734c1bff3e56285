//! The agents of the nodes of a playground: images, restarts, probes and metadata of containers.

use serde_json::{Value, json};

use crate::process::{Playground, Scratch, text};

const GROUP: &str = "/apis/apps.kruise.io/v1beta1";
const NAMESPACED: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default";
const MARKERS: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/podprobemarkers";
const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn send(playground: &Playground, verb: &str, path: &str, body: &Value) -> Value {
    let kind = if verb == "PATCH" { MERGE } else { JSON };
    let (code, answer) = playground.request(verb, path, kind, &body.to_string());
    assert!((200..300).contains(&code), "{verb} {path}: {answer}");
    answer
}

/// A playground with so many nodes, once each of them has its NodeImage: a job that finds none has nothing to do.
fn start(scratch: &Scratch, nodes: usize, options: &[&str]) -> Playground {
    let playground = Playground::start(
        scratch,
        &[&["--fast", "--nodes", &nodes.to_string()], options].concat(),
    );
    playground.until("each node has its NodeImage", |playground| {
        let images = playground.get(&format!("{GROUP}/nodeimages"));
        (images["items"].as_array()?.len() == nodes).then_some(())
    });
    playground
}

/// A CloneSet whose pods are updated in place.
fn create_set(playground: &Playground, name: &str, replicas: u32, container: &Value) {
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": name}, "annotations": {"level": "low"}},
                     "spec": {"containers": [container]}}}});
    send(playground, "POST", &format!("{NAMESPACED}/clonesets"), &set);
}

/// All pods, if exactly so many exist and are ready.
fn ready(playground: &Playground, count: usize) -> Option<Vec<Value>> {
    let list = playground.get(PODS);
    let pods = list["items"].as_array().unwrap();
    let is_ready = |pod: &Value| condition(pod, "Ready") == Some("True");
    (pods.len() == count && pods.iter().all(is_ready)).then(|| pods.clone())
}

/// The status of a condition.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let mut all = object["status"]["conditions"].as_array()?.iter();
    all.find(|one| one["type"] == kind)?["status"].as_str()
}

/// How often the only container of a pod was restarted.
fn restarts(pod: &Value) -> u64 {
    pod["status"]["containerStatuses"][0]["restartCount"]
        .as_u64()
        .unwrap()
}

fn create_job(playground: &Playground, name: &str, spec: &Value) {
    let job = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
                     "metadata": {"name": name}, "spec": spec});
    send(playground, "POST", &format!("{NAMESPACED}/imagepulljobs"), &job);
}

/// The status of a job, once it has ended.
fn ended(playground: &Playground, name: &str) -> Value {
    playground.until(&format!("job {name} ends"), |playground| {
        let job = playground.get(&format!("{NAMESPACED}/imagepulljobs/{name}"));
        job["status"]["completionTime"]
            .is_string()
            .then(|| job["status"].clone())
    })
}

/// Sets the condition `Ready` of a node.
fn set_ready(playground: &Playground, node: &str, status: &str) {
    let conditions =
        json!([{"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let patch = json!({"status": {"conditions": conditions}});
    send(playground, "PATCH", &format!("{NODES}/{node}/status"), &patch);
}

fn image_events(playground: &Playground) -> Vec<String> {
    let events = playground.get("/api/v1/namespaces/default/events");
    let events = events["items"].as_array().unwrap().iter();
    let pulled = events.filter(|event| event["reason"] == "Pulled");
    pulled
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn jobs_pull_images_on_all_nodes_and_pods_need_not_pull_them_again() {
    let scratch = Scratch::new("agents-images");
    let playground = start(&scratch, 3, &[]);
    create_job(&playground, "warm", &json!({"image": "web:1", "parallelism": 10}));
    let status = ended(&playground, "warm");
    assert_eq!(status["desired"], 3, "{status}");
    assert_eq!(status["succeeded"], 3, "{status}");
    let images = playground.get(&format!("{GROUP}/nodeimages"));
    let images = images["items"].as_array().unwrap();
    assert_eq!(images.len(), 3);
    for node in images {
        let tag = &node["status"]["imageStatuses"]["web"]["tags"][0];
        assert_eq!(
            (&tag["tag"], &tag["phase"]),
            (&json!("1"), &json!("Succeeded")),
            "{node}"
        );
    }
    create_set(&playground, "web", 3, &json!({"name": "main", "image": "web:1"}));
    playground.until("three pods are ready", |all| ready(all, 3));
    let events = playground.until("their images are reported", |playground| {
        Some(image_events(playground)).filter(|events| !events.is_empty())
    });
    assert!(
        events.iter().all(|event| event.contains("already present")),
        "{events:?}"
    );

    let nowhere =
        json!({"image": "registry.invalid/web:1", "parallelism": 10, "pullPolicy": {"backoffLimit": 0}});
    create_job(&playground, "nowhere", &nowhere);
    let status = ended(&playground, "nowhere");
    assert_eq!(status["failed"], 3, "{status}");
    assert_eq!(
        status["failedNodes"],
        json!(["node-1", "node-2", "node-3"]),
        "{status}"
    );
    let node = playground.get(&format!("{GROUP}/nodeimages/node-1"));
    let tag = &node["status"]["imageStatuses"]["registry.invalid/web"]["tags"][0];
    assert!(
        tag["message"].as_str().unwrap().contains("no such host"),
        "{node}"
    );
    assert_eq!(playground.end("INT"), Some(0));
    assert_eq!(scratch.left(), [""; 0]);
}

#[test]
fn requests_and_the_command_restart_containers() {
    let scratch = Scratch::new("agents-restart");
    let playground = Playground::start(&scratch, &["--fast"]);
    create_set(&playground, "web", 2, &json!({"name": "main", "image": "web:1"}));
    let pods = playground.until("two pods are ready", |all| ready(all, 2));
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    let request = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": "again"}, "spec": {"podName": name, "containers": [{"name": "main"}]}});
    let requests = format!("{NAMESPACED}/containerrecreaterequests");
    send(&playground, "POST", &requests, &request);
    let done = playground.until("the request ends", |playground| {
        let request = playground.get(&format!("{requests}/again"));
        (request["status"]["phase"] == "Completed").then_some(request)
    });
    let states = &done["status"]["containerRecreateStates"];
    assert_eq!(states[0]["phase"], "Succeeded", "{done}");
    let after = playground.until("they are ready again", |all| ready(all, 2));
    let before = |pod: &Value| u64::from(pod["metadata"]["name"] == name);
    assert!(after.iter().all(|pod| restarts(pod) == before(pod)), "{after:?}");

    let kubeconfig = ["--kubeconfig", text(&playground.kubeconfig)];
    let output =
        scratch.output(&[&["restart", "clone/web", "--containers", "main"][..], &kubeconfig].concat());
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("CloneSet default/web: restarted"), "{printed}");
    let last = playground.until("both are ready", |all| ready(all, 2));
    assert!(
        last.iter().all(|pod| restarts(pod) == 1 + before(pod)),
        "{last:?}"
    );
    assert_eq!(playground.end("INT"), Some(0));
}

#[test]
fn commands_mark_pods_and_requests_to_pods_cannot_be_made() {
    let scratch = Scratch::new("agents-probes");
    let playground = Playground::start(&scratch, &["--fast"]);
    create_set(&playground, "web", 1, &json!({"name": "main", "image": "web:1"}));
    playground.until("a pod is ready", |all| ready(all, 1));
    let probe = |name: &str, probe: &Value| {
        json!({"name": name, "containerName": "main", "probe": probe, "podConditionType": format!("example.com/{name}"),
               "markerPolicy": [{"state": "Succeeded", "labels": {name: "yes"}}, {"state": "Failed", "labels": {name: "no"}}]})
    };
    let probes = [
        probe(
            "idle",
            &json!({"exec": {"command": ["true"]}, "periodSeconds": 1}),
        ),
        probe(
            "busy",
            &json!({"exec": {"command": ["sh", "-c", "exit 3"]}, "periodSeconds": 1}),
        ),
        probe(
            "page",
            &json!({"httpGet": {"path": "/", "port": 80}, "periodSeconds": 1}),
        ),
        probe("port", &json!({"tcpSocket": {"port": 80}, "periodSeconds": 1})),
    ];
    let marker = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": probes}});
    send(&playground, "POST", MARKERS, &marker);
    let pod = playground.until("the commands have marked the pod", |playground| {
        let pod = ready(playground, 1)?.remove(0);
        let labels = &pod["metadata"]["labels"];
        (labels["idle"] == "yes" && labels["busy"] == "no").then_some(pod)
    });
    assert_eq!(condition(&pod, "example.com/idle"), Some("True"), "{pod}");
    assert_eq!(condition(&pod, "example.com/busy"), Some("False"), "{pod}");
    let node = pod["spec"]["nodeName"].as_str().unwrap();
    let path = format!("/apis/apps.kruise.io/v1alpha1/nodepodprobes/{node}");
    let states = playground.until("requests are given up", |playground| {
        let probed = playground.get(&path)["status"]["podProbeStatuses"][0]["probeStates"].clone();
        let states = probed.as_array()?.iter();
        let unknown: Vec<Value> = states.filter(|one| one["state"] == "Unknown").cloned().collect();
        (unknown.len() == 2).then_some(unknown)
    });
    for state in states {
        let message = state["message"].as_str().unwrap();
        assert!(message.contains("no network to pods"), "{message}");
    }
    let pod = ready(&playground, 1).unwrap().remove(0);
    for name in ["page", "port"] {
        assert_eq!(pod["metadata"]["labels"][name], Value::Null, "{pod}");
        assert_ne!(
            condition(&pod, &format!("example.com/{name}")),
            Some("True"),
            "{pod}"
        );
    }
    assert_eq!(playground.end("INT"), Some(0));
}

#[test]
fn a_variable_that_reads_an_annotation_follows_it_in_place() {
    let scratch = Scratch::new("agents-env");
    let playground = Playground::start(&scratch, &["--fast"]);
    let source = json!({"fieldRef": {"fieldPath": "metadata.annotations['level']"}});
    let container =
        json!({"name": "main", "image": "web:1", "env": [{"name": "LEVEL", "valueFrom": source}]});
    create_set(&playground, "web", 2, &container);
    let before = playground.until("two pods are ready", |all| ready(all, 2));
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"level": "high"}}}}});
    send(
        &playground,
        "PATCH",
        &format!("{NAMESPACED}/clonesets/web"),
        &patch,
    );
    let after = playground.until("both have the new level", |playground| {
        let set = playground.get(&format!("{NAMESPACED}/clonesets/web"));
        let status = &set["status"];
        let is_current = status["observedGeneration"] == set["metadata"]["generation"];
        let pods = ready(playground, 2)?;
        (is_current && status["updatedReadyReplicas"] == 2 && status["updatedReplicas"] == 2).then_some(pods)
    });
    let identity = |pods: &[Value]| {
        pods.iter()
            .map(|pod| pod["metadata"]["uid"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(identity(&before), identity(&after), "they are the same pods");
    for pod in &after {
        assert_eq!(pod["metadata"]["annotations"]["level"], "high", "{pod}");
        assert_eq!(restarts(pod), 1, "once: {pod}");
        let report = pod["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"].as_str();
        let report: Value = serde_json::from_str(report.unwrap()).unwrap();
        let reported = &report["containers"][0]["containerID"];
        assert_eq!(
            *reported, pod["status"]["containerStatuses"][0]["containerID"],
            "{pod}"
        );
    }
    assert_eq!(playground.end("INT"), Some(0));
}

#[test]
fn a_node_that_does_not_answer_pulls_nothing_until_it_does_and_a_new_node_has_an_agent() {
    let scratch = Scratch::new("agents-nodes");
    let playground = start(&scratch, 2, &[]);
    set_ready(&playground, "node-1", "Unknown");
    create_job(&playground, "warm", &json!({"image": "web:1", "parallelism": 10}));
    let status = |playground: &Playground| {
        playground.get(&format!("{NAMESPACED}/imagepulljobs/warm"))["status"].clone()
    };
    playground.until("one of the nodes has pulled", |playground| {
        let status = status(playground);
        assert_eq!(status["completionTime"], Value::Null, "{status}");
        (status["succeeded"] == 1 && status["active"] == 1).then_some(())
    });
    // A node that appears later, and that has pulled, shows that time enough has passed.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}});
    send(&playground, "POST", NODES, &node);
    playground.until("the new node has pulled", |playground| {
        (status(playground)["succeeded"] == 2).then_some(())
    });
    let image = playground.get(&format!("{GROUP}/nodeimages/node-1"));
    assert_eq!(image["status"]["imageStatuses"]["web"], Value::Null, "{image}");
    set_ready(&playground, "node-1", "True");
    assert_eq!(ended(&playground, "warm")["succeeded"], 3);
    assert_eq!(playground.end("INT"), Some(0));
}

#[test]
fn no_more_agents_run_than_wanted_and_one_is_free_again_when_its_node_is_gone() {
    let scratch = Scratch::new("agents-few");
    let playground = start(&scratch, 2, &["--agents=1"]);
    create_job(&playground, "warm", &json!({"image": "web:1", "parallelism": 10}));
    let first = playground.until("one of the nodes has pulled", |playground| {
        let images = playground.get(&format!("{GROUP}/nodeimages"));
        let mut images = images["items"].as_array().unwrap().iter();
        let pulled =
            images.find(|node| node["status"]["imageStatuses"]["web"]["tags"][0]["phase"] == "Succeeded")?;
        Some(pulled["metadata"]["name"].as_str().unwrap().to_owned())
    });
    let job = playground.get(&format!("{NAMESPACED}/imagepulljobs/warm"));
    assert_eq!(job["status"]["completionTime"], Value::Null, "{job}");
    send(&playground, "DELETE", &format!("{NODES}/{first}"), &json!({}));
    let status = ended(&playground, "warm");
    assert_eq!(
        (&status["succeeded"], &status["failed"]),
        (&json!(1), &json!(0)),
        "{status}"
    );
    assert_eq!(playground.end("INT"), Some(0));
}
