//! `kruise crds`: printed definitions, and their comparison with those of a server.

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::command::{Ended, Folder};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

fn ours(path: &str) -> Option<Value> {
    let name = path.strip_prefix(DEFINITIONS)?;
    kruise_kinds::definitions("kruise-system")
        .into_iter()
        .find(|definition| definition["metadata"]["name"] == name)
}

fn check(server: &ApiServer) -> Ended {
    let folder = Folder::new();
    folder.kruise(&["crds", "--check", &folder.kubeconfig(server.address())])
}

#[test]
fn all_definitions_are_printed() {
    let ended = Folder::new().kruise(&["crds", "--namespace=elsewhere"]);
    let names: Vec<String> = kruise_kinds::definitions("elsewhere")
        .iter()
        .map(|definition| format!("name: {}", definition["metadata"]["name"].as_str().unwrap()))
        .collect();
    let mut texts: Vec<&str> = names.iter().map(String::as_str).collect();
    texts.push("namespace: elsewhere");
    ended.assert(0, &texts);
    assert_eq!(ended.output.matches("---\n").count(), names.len());
}

#[test]
fn a_cluster_with_our_definitions_is_alike() {
    let server = ApiServer::start(|path| Some((200, ours(path)?)));
    check(&server).assert(0, &["0 different, 0 not installed"]);
}

#[test]
fn missing_and_different_definitions_are_reported_with_advice() {
    let server = ApiServer::start(|path| {
        let mut definition = ours(path).filter(|_| path.ends_with("/clonesets.apps.kruise.io"))?;
        definition["spec"]["names"]["shortNames"] = json!([]);
        Some((200, definition))
    });
    check(&server).assert(
        1,
        &[
            "spec.names.shortNames: the cluster has [], ours has [\"clone\"]",
            "take ours: kruise crds | kubectl apply -f -",
            "sidecarsets.apps.kruise.io: is not installed",
            "0 alike, 1 different",
        ],
    );
}

#[test]
fn a_forbidden_read_is_an_error_of_its_own() {
    let server = ApiServer::start(|_| {
        Some((
            403,
            json!({"kind": "Status", "code": 403, "message": "not for you"}),
        ))
    });
    check(&server).assert(2, &["cannot read the definition", "not for you"]);
}
