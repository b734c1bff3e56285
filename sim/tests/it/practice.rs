//! What people do on a playground: manifests that a server takes, limits that it sets, and other people's kinds.

use kruise_sim::{Method, Request};
use serde_json::{Value, json};

use crate::server::Server;
use crate::transcript::{DEFINITIONS, definition};

const NAMESPACE: &str = "/api/v1/namespaces/default";

fn pod(name: &str, spec: &Value) -> Value {
    let mut pod =
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}});
    for (member, value) in spec.as_object().unwrap() {
        pod["spec"][member] = value.clone();
    }
    pod
}

#[test]
fn a_stateful_set_mounts_the_volumes_of_its_claim_templates() {
    let mut server = Server::new();
    let container = json!({"name": "db", "image": "postgres:16", "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
    let mut set = json!({"metadata": {"name": "db"}, "spec": {
        "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}]}});
    let path = "/apis/apps/v1/namespaces/default/statefulsets";
    assert_eq!(server.post(path, &set).0, 201);
    set["metadata"]["name"] = "other".into();
    set["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] = "date".into();
    assert_eq!(server.post(path, &set).0, 422);
}

#[test]
fn a_pod_has_the_priority_of_its_class() {
    let mut server = Server::new();
    let pods = format!("{NAMESPACE}/pods");
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"});
    assert_eq!(server.post(classes, &class).0, 201);
    let (code, high) = server.post(&pods, &pod("high", &json!({"priorityClassName": "high"})));
    assert_eq!(code, 201, "{high}");
    assert_eq!(
        (&high["spec"]["priority"], &high["spec"]["preemptionPolicy"]),
        (&json!(1000), &json!("Never"))
    );
    let (_, plain) = server.post(&pods, &pod("plain", &json!({})));
    assert_eq!(
        (&plain["spec"]["priority"], plain["spec"].get("priorityClassName")),
        (&json!(0), None)
    );
    let usual = json!({"metadata": {"name": "usual"}, "value": 5, "globalDefault": true});
    assert_eq!(server.post(classes, &usual).0, 201);
    let (_, plain) = server.post(&pods, &pod("default", &json!({})));
    assert_eq!(
        (&plain["spec"]["priority"], &plain["spec"]["priorityClassName"]),
        (&json!(5), &json!("usual"))
    );
    let (code, refused) = server.post(&pods, &pod("a", &json!({"priorityClassName": "none"})));
    let why = "pods \"a\" is forbidden: no PriorityClass with name none was found";
    assert_eq!((code, &refused["message"]), (403, &json!(why)));
    let (code, refused) = server.post(
        &pods,
        &pod("a", &json!({"priorityClassName": "high", "priority": 7})),
    );
    assert_eq!((code, &refused["reason"]), (403, &json!("Forbidden")));
}

#[test]
fn the_scale_of_a_custom_resource_without_replicas_can_only_be_written() {
    let mut server = Server::new();
    let mut definition = definition();
    let properties = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    properties["spec"]["properties"]["replicas"]
        .as_object_mut()
        .unwrap()
        .remove("default");
    server.post(DEFINITIONS, &definition);
    let things = "/apis/example.com/v1/namespaces/default/things";
    server.post(
        things,
        &json!({"metadata": {"name": "a"}, "spec": {"image": "nginx"}}),
    );
    let scale = format!("{things}/a/scale");
    let (code, failure) = server.get(&scale);
    let why = "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
    assert_eq!((code, &failure["message"]), (500, &json!(why)));
    let (code, failure) = server.patch("merge", &scale, &json!({"metadata": {"labels": {"a": "b"}}}));
    let why = "the spec replicas field \".spec.replicas\" cannot be empty";
    assert_eq!((code, &failure["message"]), (400, &json!(why)));
    let (code, scaled) = server.patch("merge", &scale, &json!({"spec": {"replicas": 4}}));
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(4)));
    assert_eq!(server.get(&scale).1["spec"]["replicas"], 4);
}

#[test]
fn pods_of_kinds_that_are_not_served_are_left_alone() {
    let mut server = Server::new();
    for (name, version, kind) in [
        ("kept", "argoproj.io/v1alpha1", "Rollout"),
        ("gone", "v1", "ConfigMap"),
    ] {
        let owner = json!({"apiVersion": version, "kind": kind, "name": "o", "uid": format!("uid-{name}"), "controller": true});
        let mut pod = pod(name, &json!({}));
        pod["metadata"]["ownerReferences"] = json!([owner]);
        assert_eq!(server.post(&format!("{NAMESPACE}/pods"), &pod).0, 201);
    }
    server.api.tick(server.now);
    assert_eq!(server.get(&format!("{NAMESPACE}/pods/kept")).0, 200);
    assert_eq!(server.get(&format!("{NAMESPACE}/pods/gone")).0, 404);
}

#[test]
fn a_quota_limits_how_many_objects_there_are() {
    let mut server = Server::new();
    let hard = json!({"pods": "1", "count/deployments.apps": "0", "requests.cpu": "1"});
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": hard}});
    let request = Request::new(Method::Post, &format!("{NAMESPACE}/resourcequotas"), Some(&quota));
    let response = server.api.handle(&request, server.now).response().unwrap();
    assert_eq!(response.code, 201);
    assert_eq!(
        response.warnings,
        ["spec.hard[requests.cpu]: only counts of objects have an effect here"]
    );
    let pods = format!("{NAMESPACE}/pods");
    assert_eq!(server.post(&pods, &pod("a", &json!({}))).0, 201);
    let (code, refused) = server.post(&pods, &pod("b", &json!({})));
    let why =
        "pods \"b\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1";
    assert_eq!((code, &refused["message"]), (403, &json!(why)));
    server.patch(
        "merge",
        &format!("{pods}/a/status"),
        &json!({"status": {"phase": "Succeeded"}}),
    );
    assert_eq!(server.post(&pods, &pod("b", &json!({}))).0, 201);
    let elsewhere = json!({"metadata": {"name": "other"}});
    server.post("/api/v1/namespaces", &elsewhere);
    assert_eq!(
        server
            .post("/api/v1/namespaces/other/pods", &pod("c", &json!({})))
            .0,
        201
    );
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let web = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let (code, refused) = server.post("/apis/apps/v1/namespaces/default/deployments", &web);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("count/deployments.apps=1"),
        "{code} {refused}"
    );
}

#[test]
fn an_autoscaler_is_stored_in_both_versions() {
    let mut server = Server::new();
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let target = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"});
    let older = json!({"metadata": {"name": "old"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5,
        "targetCPUUtilizationPercentage": 70}});
    let (code, made) = server.post(&path("v1"), &older);
    assert_eq!(
        (code, &made["spec"]["targetCPUUtilizationPercentage"]),
        (201, &json!(70)),
        "{made}"
    );
    let (_, newer) = server.get(&format!("{}/old", path("v2")));
    assert_eq!(
        newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
        70
    );
    let metric = json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}});
    let newer = json!({"metadata": {"name": "new"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5, "metrics": [metric]}});
    let (code, made) = server.post(&path("v2"), &newer);
    assert_eq!((code, &made["spec"]["minReplicas"]), (201, &json!(1)), "{made}");
    let (_, mut older) = server.get(&format!("{}/new", path("v1")));
    assert!(
        older["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"].is_string(),
        "{older}"
    );
    older["spec"]["maxReplicas"] = 7.into();
    let (code, changed) = server.put(&format!("{}/new", path("v1")), &older);
    assert_eq!(code, 200, "{changed}");
    let (_, newer) = server.get(&format!("{}/new", path("v2")));
    assert_eq!(
        (&newer["spec"]["maxReplicas"], &newer["spec"]["metrics"]),
        (&json!(7), &json!([metric]))
    );
    assert_eq!(newer["metadata"].get("annotations"), None);
    let bad = json!({"metadata": {"name": "bad"}, "spec": {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 2}});
    assert_eq!(server.post(&path("v2"), &bad).0, 422);
}
