//! Logs, which are made of a pod's status.

use kruise_sim::{Method, Request};
use serde_json::{Value, json};

use crate::server::Server;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A pod with containers, on a node unless it is empty, with a status.
fn pod(server: &mut Server, name: &str, containers: &[&str], node: &str, status: Value) {
    let containers: Vec<Value> = containers
        .iter()
        .map(|name| json!({"name": name, "image": "i:1"}))
        .collect();
    let mut spec = json!({"containers": containers});
    if !node.is_empty() {
        spec["nodeName"] = node.into();
    }
    assert_eq!(
        server
            .post(PODS, &json!({"metadata": {"name": name}, "spec": spec}))
            .0,
        201
    );
    let patch = json!({"status": status});
    assert_eq!(
        server.patch("merge", &format!("{PODS}/{name}/status"), &patch).0,
        200
    );
}

fn log(server: &mut Server, target: &str) -> (u16, String) {
    let request =
        Request::new(Method::Get, &format!("{PODS}/{target}"), None).accept("application/json, */*");
    let response = server.api.handle(&request, server.now).response().unwrap();
    let text = String::from_utf8(response.body.clone()).unwrap();
    match response.code {
        200 => {
            assert_eq!(response.content_type, "text/plain");
            (200, text)
        }
        code => (
            code,
            response.value()["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        ),
    }
}

fn restarted() -> Value {
    json!({"containerStatuses": [{"name": "main", "image": "i:2", "restartCount": 3,
        "state": {"running": {"startedAt": "2026-01-01T00:00:10Z"}},
        "lastState": {"terminated": {"exitCode": 7, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": "2026-01-01T00:00:09Z"}}}]})
}

#[test]
fn a_log_shows_what_runs_and_what_ended() {
    let mut server = Server::new();
    pod(&mut server, "p", &["main"], "n", restarted());
    let (_, text) = log(&mut server, "p/log");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[1..],
        ["image i:2", "started at 2026-01-01T00:00:10Z, restarts 3"]
    );
    let (_, text) = log(&mut server, "p/log?previous=true&tailLines=1");
    assert_eq!(text, "ended at 2026-01-01T00:00:09Z with exit code 7 (Error)\n");
    let (_, text) = log(&mut server, "p/log?timestamps=true&tailLines=1&limitBytes=20");
    assert_eq!(text, "2026-01-01T00:00:10Z");
}

#[test]
fn what_has_no_log_is_refused_in_the_words_of_a_server() {
    let mut server = Server::new();
    pod(&mut server, "p", &["main"], "n", json!({}));
    pod(&mut server, "two", &["a", "b"], "n", json!({}));
    pod(&mut server, "free", &["main"], "", json!({}));
    let mut refused = |target: &str, code: u16, why: &str| {
        assert_eq!(log(&mut server, target), (code, why.to_owned()), "{target}");
    };
    refused(
        "p/log",
        400,
        "container \"main\" in pod \"p\" is waiting to start: ContainerCreating",
    );
    refused(
        "p/log?previous=true",
        400,
        "previous terminated container \"main\" in pod \"p\" not found",
    );
    refused("p/log?container=x", 400, "container x is not valid for pod p");
    refused(
        "two/log",
        400,
        "a container name must be specified for pod two, choose one of: [a b]",
    );
    refused("none/log", 404, "pods \"none\" not found");
    refused("free/log", 200, "");
}
