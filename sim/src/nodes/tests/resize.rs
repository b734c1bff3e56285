//! Resources of running containers.

use serde_json::{Value, json};

use super::{container, play, with_spec};
use crate::wire::{Method, Request};
use crate::world::tests::{PODS, Play, condition};

fn resources(cpu: &str) -> Value {
    json!({"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": cpu}})
}

/// A pod whose container requests so much, on a node that has four processors.
fn requesting(play: &mut Play, name: &str, cpu: &str) {
    let main = json!({"name": "main", "image": "web:1", "resources": resources(cpu),
        "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]});
    play.post(PODS, &with_spec(name, &json!({"containers": [main]})));
    play.rest();
}

fn small() -> Play {
    let mut play = play();
    let four = json!({"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
    play.merge("/api/v1/nodes/n1/status", &four);
    play.rest();
    play
}

fn resize(play: &mut Play, name: &str, resources: &Value) -> (u16, Value) {
    let body = json!({"metadata": {"labels": {"dropped": "yes"}},
        "spec": {"containers": [{"name": "main", "resources": resources}]}});
    let path = format!("{PODS}/{name}/resize");
    let request = Request::new(Method::Patch, &path, Some(&body));
    let response = play
        .0
        .handle(&request.content_type("application/strategic-merge-patch+json"))
        .response()
        .unwrap();
    play.rest();
    (response.code, response.value())
}

fn has(play: &mut Play, name: &str) -> String {
    let pod = play.pod(name);
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(status["allocatedResources"], status["resources"]["requests"]);
    status["resources"]["limits"]["cpu"].as_str().unwrap().to_owned()
}

#[test]
fn a_container_gets_what_it_requests_without_a_restart() {
    let mut play = small();
    requesting(&mut play, "a", "1");
    let before = play.pod("a");
    assert_eq!(resize(&mut play, "a", &resources("2")).0, 200);
    let after = play.pod("a");
    assert_eq!(has(&mut play, "a"), "2");
    assert_eq!(
        container(&after["status"]["containerStatuses"][0]),
        "main+0 running web:1"
    );
    assert_eq!(
        after["metadata"]["labels"], before["metadata"]["labels"],
        "nothing else changes"
    );
    assert_eq!(after["metadata"]["generation"], json!(2));
}

#[test]
fn a_container_restarts_where_its_policy_requires_it() {
    let mut play = small();
    requesting(&mut play, "a", "1");
    resize(&mut play, "a", &json!({"requests": {"memory": "2Gi"}}));
    let after = play.pod("a");
    let status = &after["status"]["containerStatuses"][0];
    assert_eq!(container(status), "main+1 running web:1");
    assert_eq!(status["resources"]["requests"]["memory"], "2Gi");
}

#[test]
fn more_than_the_node_has_is_refused_until_it_is_taken_back() {
    let mut play = small();
    requesting(&mut play, "a", "1");
    assert_eq!(resize(&mut play, "a", &resources("5")).0, 200);
    let (status, reason, message) = condition(&play.pod("a"), "PodResizePending");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Infeasible"));
    assert_eq!(
        message,
        "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"
    );
    assert_eq!(has(&mut play, "a"), "1");
    resize(&mut play, "a", &resources("1"));
    assert_eq!(
        condition(&play.pod("a"), "PodResizePending").0,
        "",
        "the condition is gone"
    );
}

#[test]
fn what_others_have_is_waited_for() {
    let mut play = small();
    requesting(&mut play, "a", "1");
    requesting(&mut play, "b", "2");
    resize(&mut play, "a", &resources("3"));
    assert_eq!(condition(&play.pod("a"), "PodResizePending").1, "Deferred");
    assert_eq!(has(&mut play, "a"), "1");
    resize(&mut play, "b", &resources("1"));
    assert_eq!(has(&mut play, "a"), "3", "another pod has less");
    requesting(&mut play, "c", "0");
    resize(&mut play, "b", &resources("2"));
    assert_eq!(condition(&play.pod("b"), "PodResizePending").1, "Deferred");
    play.delete(&format!("{PODS}/a"));
    play.rest();
    assert_eq!(has(&mut play, "b"), "2", "another pod is gone");
}

#[test]
fn what_a_server_refuses_is_refused_in_its_words() {
    let mut play = small();
    requesting(&mut play, "a", "1");
    let mut refused = |resources: Value| {
        let (code, status) = resize(&mut play, "a", &resources);
        assert_eq!(code, 422, "{status}");
        status["message"].as_str().unwrap().to_owned()
    };
    let memory = refused(json!({"limits": {"memory": "1Gi"}}));
    assert!(
        memory.contains("Pod QOS Class may not change as a result of resizing"),
        "{memory}"
    );
    let other = refused(json!({"requests": {"ephemeral-storage": "1Gi"}}));
    assert!(
        other.contains("only cpu and memory resources are mutable"),
        "{other}"
    );
    let removed = refused(json!({"requests": {"memory": null}}));
    assert!(
        removed.contains("resource requests cannot be removed"),
        "{removed}"
    );
    assert_eq!(has(&mut play, "a"), "1");
    let unsupported = json!({"status": {"containerStatuses": [{"name": "main", "image": "web:1", "imageID": "",
        "ready": true, "restartCount": 0, "state": {"running": {}}}]}});
    let mut play = Play::with_stages("");
    play.post(
        PODS,
        &with_spec(
            "a",
            &json!({"containers": [{"name": "main", "image": "web:1", "resources": resources("1")}]}),
        ),
    );
    play.merge(&format!("{PODS}/a/status"), &unsupported);
    let (code, status) = resize(&mut play, "a", &resources("2"));
    assert_eq!(code, 422);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("node without support for resize"),
        "{status}"
    );
}

#[test]
fn the_last_manager_of_an_amount_is_kept_until_another_one_changes_it() {
    let mut play = small();
    requesting(&mut play, "a", "1");
    let mut request_by = |agent: &str, query: &str, resources: &Value| {
        let body = json!({"spec": {"containers": [{"name": "main", "resources": resources}]}});
        let path = format!("{PODS}/a/resize{query}");
        let mut request = Request::new(Method::Patch, &path, Some(&body));
        request.agent = agent.to_owned();
        let request = request.content_type("application/strategic-merge-patch+json");
        assert_eq!(play.0.handle(&request).response().unwrap().code, 200);
        play.rest();
        // What others write later does not change that.
        play.merge(
            &format!("{PODS}/a"),
            &json!({"metadata": {"labels": {"written": "yes"}}}),
        );
        let entries = play.pod("a")["metadata"]["managedFields"].clone();
        let described = |entry: &Value| {
            assert_eq!(entry["subresource"], "resize");
            let resources =
                &entry["fieldsV1"]["f:spec"]["f:containers"][r#"k:{"name":"main"}"#]["f:resources"];
            format!("{} {resources}", entry["manager"].as_str().unwrap())
        };
        entries
            .as_array()
            .into_iter()
            .flatten()
            .map(described)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        request_by("manager/1.0", "", &resources("1")),
        [""; 0],
        "it has that"
    );
    let both = r#"manager {"f:limits":{"f:cpu":{}},"f:requests":{"f:cpu":{}}}"#;
    assert_eq!(request_by("manager/1.0", "", &resources("2")), [both]);
    let request = json!({"requests": {"cpu": "1"}});
    assert_eq!(
        request_by("kubectl/1.0", "?fieldManager=scaler", &request),
        [
            r#"manager {"f:limits":{"f:cpu":{}}}"#,
            r#"scaler {"f:requests":{"f:cpu":{}}}"#
        ]
    );
    assert_eq!(request_by("manager", "", &resources("3")), [both]);
}
