//! What `/healthz` says while the process starts.

use crate::node::{Agent, Node, settings};
use crate::runtime::Runtime;

#[tokio::test]
async fn s7_12_11_it_is_not_healthy_before_the_first_lists() {
    let (folder, mut api) = Node::parts().await;
    api.define();
    let _runtime = Runtime::start(&folder.file("cri.sock"));
    let agent = Agent::start(settings(&folder, &api)).await;
    agent
        .says(500, "check nodeImageInformerSynced failed, err: not synced")
        .await;
    api.answer();
    agent.says(200, "ok").await;
    assert_eq!(agent.page("/elsewhere").await.0, 404);
}

#[tokio::test]
async fn a_cluster_that_does_not_serve_node_images_has_a_healthy_agent() {
    let (folder, mut api) = Node::parts().await;
    api.answer();
    let _runtime = Runtime::start(&folder.file("cri.sock"));
    let agent = Agent::start(settings(&folder, &api)).await;
    agent.says(200, "ok").await;
}

#[tokio::test]
async fn it_ends_at_once_while_the_api_server_does_not_answer() {
    let (folder, api) = Node::parts().await;
    let agent = Agent::start(settings(&folder, &api)).await;
    agent
        .says(500, "check nodeImageInformerSynced failed, err: not synced")
        .await;
    agent.end().await;
}
