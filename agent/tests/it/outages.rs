//! A runtime, an API server or a version that is away, and answers that are none.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{NODE_IMAGES, SECRETS};
use crate::credentials::registry_secret;
use crate::node::{Agent, Node, settings, until, want};
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
async fn a_runtime_that_vanishes_while_nothing_is_called_is_noticed_and_so_is_its_return() {
    let mut node = Node::new().await;
    node.agent.says(200, "ok").await;
    node.want(&json!({"nginx": {"tags": [{"tag": "1"}]}}));
    node.phase("nginx", "1", "Succeeded").await;
    node.runtime.vanish().await;
    let event = until("event", || node.api.events("ContainerRuntimeUnavailable").pop()).await;
    assert_eq!(event["involvedObject"]["name"], "n1");
    let (code, text) = node.agent.page("/healthz").await;
    assert_eq!(code, 500);
    assert!(text.starts_with("check containerRuntime failed, err: "), "{text}");
    node.runtime.come_back();
    node.agent.says(200, "ok").await;
}

#[tokio::test]
async fn an_api_server_that_is_away_while_secrets_are_read_costs_no_attempt() {
    let mut node = Node::new().await;
    node.runtime.state().course = Course::Hangs;
    node.api.create(SECRETS, &registry_secret("one", "wrong"));
    node.want(&json!({"reg.example/app": {
        "pullSecrets": [{"namespace": "kruise-daemon-config", "name": "one"}],
        "tags": [{"tag": "1", "pullPolicy": {"backoffLimit": 1}}]}}));
    node.pulls(1).await;
    node.api.go_away().await;
    let right = registry_secret("one", "right");
    node.api
        .merge(&format!("{SECRETS}/one"), &json!({"data": right["data"]}));
    // The first attempt fails, and the second one reads the secret.
    node.runtime.vanish().await;
    node.runtime.state().course = Course::Wants("right");
    node.runtime.come_back();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(node.runtime.state().pulls.len(), 1, "no pull meanwhile");
    node.api.come_back().await;
    node.phase("reg.example/app", "1", "Succeeded").await;
    let state = node.runtime.state();
    assert_eq!(state.pulls.len(), 2);
    assert_eq!(state.pulls[1].auth.as_ref().unwrap().password, "right");
}

#[tokio::test]
async fn a_version_that_is_not_served_any_more_is_left_for_one_that_is() {
    let (folder, mut api) = Node::parts().await;
    api.define();
    api.answer();
    let runtime = Runtime::start(&folder.file("cri.sock"));
    let agent = Agent::start(settings(&folder, &api)).await;
    want(&api, &json!({"nginx": {"tags": [{"tag": "1"}]}}));
    let succeeded = |collection: &str, count: usize| {
        let object = api.get(&format!("{collection}/n1"));
        (object["status"]["succeeded"] == count).then_some(())
    };
    until("the first image", || succeeded(NODE_IMAGES, 1)).await;
    // Watches of the version end; what is asked of it is not found.
    api.serve_versions(&[("v1beta1", false), ("v1alpha1", true)]);
    let older = NODE_IMAGES.replace("v1beta1", "v1alpha1");
    let more = json!({"spec": {"images": {"redis": {"tags": [{"tag": "7"}]}}}});
    api.merge(&format!("{older}/n1"), &more);
    until("the second image", || succeeded(&older, 2)).await;
    until("event", || {
        let events = api.events("PullImageSucceed");
        let is_one = |event: &&Value| event["involvedObject"]["apiVersion"] == "apps.kruise.io/v1alpha1";
        events.iter().find(is_one).cloned()
    })
    .await;
    assert_eq!(runtime.state().pulls.len(), 2, "nothing is pulled anew");
    agent.says(200, "ok").await;
    // And back.
    api.serve_versions(&[("v1beta1", true), ("v1alpha1", false)]);
    let more = json!({"spec": {"images": {"busybox": {"tags": [{"tag": "3"}]}}}});
    api.merge(&format!("{NODE_IMAGES}/n1"), &more);
    until("the third image", || succeeded(NODE_IMAGES, 3)).await;
}

#[tokio::test]
async fn a_disk_that_cannot_be_measured_is_a_metric_and_not_the_end_of_pulls() {
    let node = Node::with(|settings| settings.min_free_percent = 1).await;
    let unmeasured = "kruise_daemon_image_filesystem_unmeasured";
    node.runtime.state().mountpoint = "/no/such/folder/overlay-images".into();
    node.want(&json!({"nginx": {"tags": [{"tag": "1"}]}}));
    node.phase("nginx", "1", "Succeeded").await;
    let (_, text) = node.agent.page("/metrics").await;
    assert!(text.contains(&format!("\n{unmeasured} 1\n")), "{text}");
    node.runtime.state().mountpoint = node.folder.path().to_str().unwrap().into();
    let more = json!({"spec": {"images": {"redis": {"tags": [{"tag": "7"}]}}}});
    node.api.merge(&format!("{NODE_IMAGES}/n1"), &more);
    node.pulls(2).await;
    let (_, text) = node.agent.page("/metrics").await;
    assert!(text.contains(&format!("\n{unmeasured} 0\n")), "{text}");
    let sizes = text
        .lines()
        .find(|line| line.starts_with("kruise_daemon_image_filesystem_size_bytes "));
    assert!(sizes.is_some_and(|line| !line.ends_with(" 0.0")), "{text}");
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
