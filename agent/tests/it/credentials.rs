//! Credentials that images are pulled with.

use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::api::SECRETS;
use crate::node::{Node, until};
use crate::runtime::Course;

const REGISTRY: &str = "reg.example";

fn config(registry: &str, username: &str, password: &str) -> Value {
    json!({"auths": {registry: {"username": username, "password": password}}})
}

fn secret(name: &str, config: &str) -> Value {
    json!({"metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson",
           "data": {".dockerconfigjson": STANDARD.encode(config)}})
}

/// A secret whose user `ann` has this password.
pub(crate) fn registry_secret(name: &str, password: &str) -> Value {
    secret(name, &config(REGISTRY, "ann", password).to_string())
}

fn of(name: &str) -> Value {
    json!({"namespace": "kruise-daemon-config", "name": name})
}

/// The users that pulled, with nothing for nobody.
fn users(node: &Node) -> Vec<String> {
    let state = node.runtime.state();
    let auths = state.pulls.iter().map(|pull| pull.auth.clone());
    auths
        .map(|auth| auth.map(|auth| auth.username).unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn s7_12_7_a_wrong_credential_is_followed_by_the_right_one() {
    let node = Node::new().await;
    node.runtime.state().course = Course::Wants("right");
    for (name, user, password) in [("one", "ann", "wrong"), ("two", "bob", "right")] {
        let config = config(REGISTRY, user, password).to_string();
        node.api.create(SECRETS, &secret(name, &config));
    }
    node.want(&json!({"reg.example/app": {"pullSecrets": [of("one"), of("two")],
        "tags": [{"tag": "1", "pullPolicy": {"backoffLimit": 0}}]}}));
    node.phase("reg.example/app", "1", "Succeeded").await;
    assert_eq!(users(&node), ["ann", "bob"]);
}

#[tokio::test]
async fn s7_4_3_where_all_credentials_fail_nobody_pulls_without_and_each_error_is_told_once() {
    let node = Node::new().await;
    node.runtime.state().course = Course::Wants("right");
    for (name, user) in [("one", "ann"), ("two", "bob")] {
        let config = config(REGISTRY, user, "wrong").to_string();
        node.api.create(SECRETS, &secret(name, &config));
    }
    node.want(&json!({"reg.example/app": {"pullSecrets": [of("one"), of("two")],
        "tags": [{"tag": "1", "pullPolicy": {"backoffLimit": 0}}]}}));
    let status = node.phase("reg.example/app", "1", "Failed").await;
    assert_eq!(users(&node), ["ann", "bob"]);
    let message = status["message"].as_str().unwrap();
    assert_eq!(message.matches("401 Unauthorized").count(), 1, "{message}");
}

#[tokio::test]
async fn s7_12_9_5_a_secret_that_is_corrected_is_used_by_the_next_attempt() {
    let node = Node::new().await;
    node.runtime.state().course = Course::Wants("right");
    node.api.create(
        SECRETS,
        &secret("one", &config(REGISTRY, "ann", "wrong").to_string()),
    );
    node.want(&json!({"reg.example/app": {"pullSecrets": [of("one")],
        "tags": [{"tag": "1", "pullPolicy": {"backoffLimit": 1}}]}}));
    node.pulls(1).await;
    let right = STANDARD.encode(config(REGISTRY, "ann", "right").to_string());
    node.api.merge(
        &format!("{SECRETS}/one"),
        &json!({"data": {".dockerconfigjson": right}}),
    );
    node.phase("reg.example/app", "1", "Succeeded").await;
}

#[tokio::test]
async fn s7_4_3_without_a_matching_entry_anybody_pulls() {
    let node = Node::new().await;
    node.api.create(
        SECRETS,
        &secret("one", &config("other.example", "ann", "a").to_string()),
    );
    node.want(
        &json!({"reg.example/app": {"pullSecrets": [of("one"), of("missing")], "tags": [{"tag": "1"}]}}),
    );
    node.phase("reg.example/app", "1", "Succeeded").await;
    assert_eq!(node.runtime.state().pulls[0].auth, None);
}

#[tokio::test]
async fn s7_4_3_a_malformed_secret_fails_the_pull_and_its_content_is_told_nobody() {
    let node = Node::new().await;
    node.api
        .create(SECRETS, &secret("broken", "{\"auths\": \"hunter2\"}"));
    node.want(&json!({"reg.example/app": {"pullSecrets": [of("broken")],
        "tags": [{"tag": "1", "pullPolicy": {"backoffLimit": 0}}]}}));
    let status = node.phase("reg.example/app", "1", "Failed").await;
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("kruise-daemon-config/broken"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
    assert!(node.runtime.state().pulls.is_empty());
}

/// The only test that starts a program: another one that starts at the same time would hold the script open.
#[tokio::test]
async fn s7_12_7_credentials_of_plugins_and_of_files_are_used() {
    let (folder, mut api) = Node::parts().await;
    let script = "#!/bin/sh\ncat > /dev/null\necho '{\"apiVersion\": \"credentialprovider.kubelet.k8s.io/v1\", \
                  \"kind\": \"CredentialProviderResponse\", \"cacheKeyType\": \"Registry\", \
                  \"auth\": {\"plugin.example\": {\"username\": \"plug\", \"password\": \"p\"}}}'\n";
    std::fs::write(folder.file("plugin"), script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.file("plugin"), executable).unwrap();
    let plugins = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: plugin\n  \
                   matchImages: [plugin.example]\n  defaultCacheDuration: 1m\n  \
                   apiVersion: credentialprovider.kubelet.k8s.io/v1\n";
    std::fs::write(folder.file("plugins.yaml"), plugins).unwrap();
    std::fs::create_dir(folder.file(".docker")).unwrap();
    let file = config("file.example", "docker", "d").to_string();
    std::fs::write(folder.file(".docker/config.json"), file).unwrap();
    api.define();
    api.answer();
    let runtime = crate::runtime::Runtime::start(&folder.file("cri.sock"));
    let agent = crate::node::Agent::start(crate::node::settings(&folder, &api)).await;
    let node = Node {
        folder,
        api,
        runtime,
        agent,
    };
    node.want(
        &json!({"plugin.example/a": {"tags": [{"tag": "1"}]}, "file.example/a": {"tags": [{"tag": "1"}]}}),
    );
    for image in ["plugin.example/a", "file.example/a"] {
        node.phase(image, "1", "Succeeded").await;
    }
    let mut users = users(&node);
    users.sort();
    assert_eq!(users, ["docker", "plug"]);
    // Counted, so that nothing of them waits.
    until("pulls", || (node.runtime.state().pulls.len() == 2).then_some(())).await;
}
