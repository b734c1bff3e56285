//! Images that the node is to have.

use serde_json::json;

use crate::api::NODE_IMAGES;
use crate::node::{Agent, Node, settings, tag_status, until};
use crate::runtime::{Course, Runtime};

#[tokio::test]
async fn s7_4_a_tag_is_pulled_and_its_end_is_reported() {
    let node = Node::new().await;
    node.want(&json!({"nginx": {
        "tags": [{"tag": "1", "version": 3, "imagePullPolicy": "Always"}],
        "sandboxConfig": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}}));
    let status = node.phase("nginx", "1", "Succeeded").await;
    assert_eq!(status["version"], 3);
    assert_eq!(status["progress"], 100);
    assert_eq!(status["imageID"], format!("nginx@sha256:{:064x}", 1));
    let object = node.api.get(&format!("{NODE_IMAGES}/n1"));
    assert_eq!(object["status"]["desired"], 1);
    assert_eq!(object["status"]["succeeded"], 1);

    let pull = node.runtime.state().pulls[0].clone();
    assert_eq!(pull.image.unwrap().image, "nginx:1");
    assert_eq!(pull.auth, None, "nobody has credentials");
    let sandbox = pull.sandbox_config.unwrap();
    assert_eq!(sandbox.labels["a"], "b");
    assert_eq!(sandbox.annotations["c"], "d");
    assert_eq!(
        sandbox.annotations["apps.kruise.io/pulling-image-by"],
        "kruise-daemon"
    );

    let event = until("event", || node.api.events("PullImageSucceed").pop()).await;
    assert_eq!(event["metadata"]["namespace"], "default");
    assert_eq!(
        event["source"],
        json!({"component": "kruise-daemon-imagepuller", "host": "n1"})
    );
    assert_eq!(
        event["involvedObject"]["uid"], object["metadata"]["uid"],
        "{event}"
    );
    assert_eq!(event["involvedObject"]["apiVersion"], "apps.kruise.io/v1beta1");
    assert!(
        event["message"]
            .as_str()
            .unwrap()
            .starts_with("Image nginx:1, ecalpsedTime ")
    );
}

#[tokio::test]
async fn s7_12_3_an_image_that_is_there_is_not_pulled_unless_the_policy_says_always() {
    let node = Node::new().await;
    node.want(&json!({"nginx": {"tags": [{"tag": "1", "imagePullPolicy": "IfNotPresent"}]}}));
    node.phase("nginx", "1", "Succeeded").await;
    let round = json!({"spec": {"images": {"nginx": {"tags": [
        {"tag": "1", "version": 1, "imagePullPolicy": "IfNotPresent"}]}}}});
    node.api.merge(&format!("{NODE_IMAGES}/n1"), &round);
    until("second round", || {
        tag_status(&node.api, "nginx", "1").filter(|status| status["version"] == 1)
    })
    .await;
    node.phase("nginx", "1", "Succeeded").await;
    assert_eq!(node.runtime.state().pulls.len(), 1);
}

#[tokio::test]
async fn s7_12_4_a_pull_that_hangs_is_cancelled_after_its_time() {
    let node = Node::new().await;
    node.runtime.state().course = Course::Hangs;
    node.want(&json!({"nginx": {"tags": [
        {"tag": "1", "pullPolicy": {"timeoutSeconds": 1, "backoffLimit": 0}}]}}));
    let status = node.phase("nginx", "1", "Failed").await;
    assert_eq!(status["message"], "pulling image nginx:1 is canceled");
    until("cancelled call", || {
        (node.runtime.state().cancelled == 1).then_some(())
    })
    .await;
    let event = until("event", || node.api.events("PullImageFailed").pop()).await;
    assert_eq!(event["type"], "Warning");
}

#[tokio::test]
async fn s7_12_5_a_tag_that_is_removed_cancels_its_pull_and_nothing_is_said_of_it() {
    let node = Node::new().await;
    node.runtime.state().course = Course::Hangs;
    node.want(&json!({"nginx": {"tags": [{"tag": "1"}]}}));
    node.pulls(1).await;
    node.runtime.state().course = Course::Succeeds;
    let other = json!({"spec": {"images": {"nginx": null, "redis": {"tags": [{"tag": "7"}]}}}});
    node.api.merge(&format!("{NODE_IMAGES}/n1"), &other);
    node.phase("redis", "7", "Succeeded").await;
    until("cancelled call", || {
        (node.runtime.state().cancelled == 1).then_some(())
    })
    .await;
    until("its status is gone", || {
        tag_status(&node.api, "nginx", "1").is_none().then_some(())
    })
    .await;
    assert!(node.api.events("PullImageFailed").is_empty());
}

#[tokio::test]
async fn s7_12_2_no_more_images_are_pulled_at_a_time_than_the_limit_says() {
    let node = Node::with(|settings| settings.max_pulls = std::num::NonZeroU32::new(2)).await;
    node.runtime.state().course = Course::Hangs;
    let tags: Vec<_> = (0..10).map(|tag| json!({"tag": tag.to_string()})).collect();
    node.want(&json!({"nginx": {"tags": tags}}));
    node.pulls(2).await;
    let object = until("counts", || {
        let object = node.api.get(&format!("{NODE_IMAGES}/n1"));
        (object["status"]["pulling"] == 2).then_some(object)
    })
    .await;
    assert_eq!(object["status"]["waiting"], 8, "{object}");
    assert_eq!(node.runtime.state().pulls.len(), 2);
}

#[tokio::test]
async fn s7_12_5_what_is_finished_is_not_repeated_by_the_next_agent_and_what_is_not_goes_on() {
    let node = Node::new().await;
    node.want(&json!({"nginx": {"tags": [{"tag": "1", "imagePullPolicy": "Always"}]}}));
    node.phase("nginx", "1", "Succeeded").await;
    node.runtime.state().course = Course::Hangs;
    let more = json!({"spec": {"images": {"redis": {"tags": [{"tag": "7"}]}}}});
    node.api.merge(&format!("{NODE_IMAGES}/n1"), &more);
    node.pulls(2).await;
    let Node {
        folder,
        api,
        runtime,
        agent,
    } = node;
    agent.end().await;
    until("cancelled call", || {
        (runtime.state().cancelled == 1).then_some(())
    })
    .await;
    let status = tag_status(&api, "redis", "7");
    assert!(
        status.is_none_or(|status| status["phase"] != "Failed"),
        "the end is no failure"
    );

    runtime.state().course = Course::Succeeds;
    let agent = Agent::start(settings(&folder, &api)).await;
    let node = Node {
        folder,
        api,
        runtime,
        agent,
    };
    node.phase("redis", "7", "Succeeded").await;
    let images: Vec<String> = node
        .runtime
        .state()
        .pulls
        .iter()
        .map(|pull| pull.image.clone().unwrap().image)
        .collect();
    assert_eq!(images, ["nginx:1", "redis:7", "redis:7"]);
}

#[tokio::test]
async fn requests_say_which_component_they_are_from_and_metrics_count_what_was_done() {
    let node = Node::new().await;
    node.want(&json!({"nginx": {"tags": [{"tag": "1"}]}}));
    node.phase("nginx", "1", "Succeeded").await;
    until("event", || node.api.events("PullImageSucceed").pop()).await;
    let audit = std::fs::read_to_string(node.folder.file("audit")).unwrap();
    for (agent, path) in [
        (
            "kruise-daemon/kruise-daemon-imagepuller",
            "nodeimages?fieldSelector=metadata.name%3Dn1",
        ),
        ("kruise-daemon/kruise-daemon-imagepuller", "nodeimages/n1/status"),
        ("kruise-daemon", "pods?fieldSelector=spec.nodeName%3Dn1"),
    ] {
        let is_one = |line: &str| line.contains(&format!("\"userAgent\":\"{agent}\"")) && line.contains(path);
        assert!(audit.lines().any(is_one), "{agent} {path}\n{audit}");
    }
    let (code, text) = node.agent.page("/metrics").await;
    assert_eq!(code, 200);
    for series in [
        "kruise_daemon_image_pulls_total{result=\"succeeded\"} 1",
        "kruise_daemon_image_pulls_in_progress 0",
        "kruise_daemon_image_pull_duration_seconds_count 1",
        "kruise_daemon_container_runtimes 1",
        "kruise_daemon_status_writes_total{resource=\"nodeimages\",result=\"succeeded\"} ",
        "kruise_daemon_runtime_calls_total{call=\"list_images\",result=\"succeeded\"} ",
        "rest_client_requests_total{code=\"200\",method=\"PATCH\",",
        "process_start_time_seconds ",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(series)),
            "{series}\n{text}"
        );
    }
}

#[tokio::test]
async fn a_cluster_with_an_older_version_of_node_images_is_served_in_it() {
    let (folder, mut api) = Node::parts().await;
    api.define_oldest();
    api.answer();
    let runtime = Runtime::start(&folder.file("cri.sock"));
    let agent = Agent::start(settings(&folder, &api)).await;
    let older = NODE_IMAGES.replace("v1beta1", "v1alpha1");
    let object = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodeImage", "metadata": {"name": "n1"},
                        "spec": {"images": {"nginx": {"tags": [{"tag": "1"}]}}}});
    api.create(&older, &object);
    until("success", || {
        let object = api.get(&format!("{older}/n1"));
        (object["status"]["succeeded"] == 1).then_some(())
    })
    .await;
    let event = until("event", || api.events("PullImageSucceed").pop()).await;
    assert_eq!(event["involvedObject"]["apiVersion"], "apps.kruise.io/v1alpha1");
    assert_eq!(runtime.state().pulls.len(), 1);
    agent.end().await;
}
