//! A runtime that is away, or that answers what is no answer.

use serde_json::json;

use crate::node::{Agent, Node, settings, until};
use crate::runtime::{Course, Runtime};

#[tokio::test]
async fn s7_12_9_8_without_a_runtime_it_waits_and_says_so_and_goes_on_when_there_is_one() {
    let (folder, mut api) = Node::parts().await;
    api.define();
    api.answer();
    crate::node::want(&api, &json!({"nginx": {"tags": [{"tag": "1"}]}}));
    let agent = Agent::start(settings(&folder, &api)).await;
    let socket = folder.file("cri.sock");
    let problem = format!("there is no socket at unix://{}", socket.display());
    let text = format!("check containerRuntime failed, err: {problem}");
    agent.says(500, &text).await;
    let event = until("event", || api.events("ContainerRuntimeUnavailable").pop()).await;
    assert_eq!(event["involvedObject"]["name"], "n1");
    assert!(event["message"].as_str().unwrap().contains(&problem), "{event}");

    let runtime = Runtime::start(&socket);
    let node = Node {
        folder,
        api,
        runtime,
        agent,
    };
    node.phase("nginx", "1", "Succeeded").await;
    node.agent.says(200, "ok").await;
}

#[tokio::test]
async fn a_socket_that_vanishes_during_a_pull_costs_an_attempt_and_the_next_one_waits_for_it() {
    let mut node = Node::new().await;
    node.runtime.state().course = Course::Hangs;
    node.want(&json!({"nginx": {"tags": [{"tag": "1", "pullPolicy": {"backoffLimit": 1}}]}}));
    node.pulls(1).await;
    node.runtime.vanish().await;
    until("event", || node.api.events("ContainerRuntimeUnavailable").pop()).await;
    let (code, text) = node.agent.page("/healthz").await;
    assert_eq!(code, 500);
    assert!(text.starts_with("check containerRuntime failed, err: "), "{text}");

    node.runtime.state().course = Course::Succeeds;
    node.runtime.come_back();
    node.phase("nginx", "1", "Succeeded").await;
    node.agent.says(200, "ok").await;
}

#[tokio::test]
async fn a_malformed_answer_of_the_runtime_is_reported_and_then_forgotten() {
    let node = Node::new().await;
    node.runtime.state().garbage = true;
    node.want(&json!({"nginx": {"tags": [
        {"tag": "1", "imagePullPolicy": "IfNotPresent", "pullPolicy": {"backoffLimit": 0}}]},
        "redis": {"tags": [{"tag": "7", "imagePullPolicy": "IfNotPresent", "pullPolicy": {"backoffLimit": 9}}]}}));
    let status = node.phase("nginx", "1", "Failed").await;
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("failed to list images: malformed answer: "),
        "{message}"
    );
    node.runtime.state().garbage = false;
    node.phase("redis", "7", "Succeeded").await;
    node.agent.says(200, "ok").await;
}
