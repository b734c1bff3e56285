//! `kruise uninstall` against a server that answers by path.

use serde_json::{Value, json};

use crate::api_server::{Answers, ApiServer};
use crate::command::{Ended, Folder};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

fn uninstall(answers: Answers) -> (Ended, ApiServer) {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    let ended = folder.kruise(&["uninstall", &folder.kubeconfig(server.address())]);
    (ended, server)
}

fn list(items: &[Value]) -> (u16, Value) {
    (200, json!({"metadata": {}, "items": items}))
}

fn object(name: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name, "resourceVersion": "7"}})
}

/// An object that is being deleted and waits for a finalizer of ours and for one of somebody else.
fn deleted(name: &str, finalizer: &str) -> Value {
    let mut object = object(name);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object["metadata"]["finalizers"] = json!(["example.com/other", finalizer]);
    object
}

/// One definition is converted by the webhook; objects of kinds that the manager makes exist.
fn clean(path: &str) -> Option<(u16, Value)> {
    if path == "/apis/apps.kruise.io/v1beta1/nodeimages" {
        return Some(list(&[object("node")]));
    }
    let name = path.strip_prefix(DEFINITIONS)?;
    let strategy = if name.starts_with("clonesets") {
        "Webhook"
    } else {
        "None"
    };
    let definition = json!({"metadata": {"name": name}, "spec": {"conversion": {"strategy": strategy}}});
    Some((200, definition))
}

fn with_workloads(path: &str) -> Option<(u16, Value)> {
    match path {
        // The older version is the only one of this cluster.
        "/apis/apps.kruise.io/v1alpha1/clonesets" => Some(list(&[object("web"), object("api")])),
        "/apis/apps.kruise.io/v1beta1/statefulsets" => Some(list(&[object("db")])),
        "/apis/policy.kruise.io/v1beta1/podunavailablebudgets" => Some(list(&[object("budget")])),
        _ => clean(path),
    }
}

fn being_deleted(path: &str) -> Option<(u16, Value)> {
    match path {
        "/apis/apps.kruise.io/v1beta1/imagepulljobs" => {
            Some(list(&[deleted("pull", "apps.kruise.io/deletion-protection")]))
        }
        "/apis/apps.kruise.io/v1alpha1/podprobemarkers" => {
            Some(list(&[deleted("marker", "kruise.io/node-pod-probe-cleanup")]))
        }
        "/apis/apps.kruise.io/v1beta1/namespaces/shop/imagepulljobs/pull"
        | "/apis/apps.kruise.io/v1alpha1/namespaces/shop/podprobemarkers/marker" => Some((200, json!({}))),
        _ => clean(path),
    }
}

fn with_a_recreation(path: &str) -> Option<(u16, Value)> {
    match path {
        "/apis/apps.kruise.io/v1beta1/containerrecreaterequests" => {
            Some(list(&[deleted("again", "crr.apps.kruise.io/unready-acquired")]))
        }
        "/apis/apps.kruise.io/v1beta1/namespaces/shop/containerrecreaterequests/again" => {
            Some((200, json!({"spec": {"podName": "web-1"}})))
        }
        "/api/v1/namespaces/shop/pods/web-1" => Some((
            200,
            json!({"status": {"conditions": [{"type": "KruisePodReady", "status": "False"}]}}),
        )),
        _ => clean(path),
    }
}

fn after_the_pod(path: &str) -> Option<(u16, Value)> {
    if path.starts_with("/api/v1/") {
        return None;
    }
    with_a_recreation(path)
}

fn forbidden(path: &str) -> Option<(u16, Value)> {
    if path.ends_with("/sidecarsets") {
        return Some((
            403,
            json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}),
        ));
    }
    clean(path)
}

#[test]
fn a_cluster_without_objects_is_clean_and_its_definitions_can_be_deleted_later() {
    let (ended, server) = uninstall(clean);
    ended.assert(
        0,
        &[
            "cluster is clean, ready to delete kruise",
            "clonesets.apps.kruise.io: conversion is off",
        ],
    );
    let reads_and_writes = server.paths();
    let of = |name: &str| {
        let path = format!("{DEFINITIONS}{name}");
        reads_and_writes.iter().filter(|seen| **seen == path).count()
    };
    assert_eq!(of("clonesets.apps.kruise.io"), 2, "read and written");
    assert_eq!(of("statefulsets.apps.kruise.io"), 1, "read only");
}

#[test]
fn objects_of_any_kind_keep_the_manager_and_nothing_is_changed() {
    let (ended, server) = uninstall(with_workloads);
    ended.assert(
        1,
        &[
            "there still exists some clonesets in the cluster\n  such as shop/web\n",
            "there still exists some advanced statefulsets in the cluster\n",
            "there still exists some podunavailablebudgets in the cluster\n",
        ],
    );
    let touched = server.paths().iter().any(|path| path.starts_with(DEFINITIONS));
    assert!(!touched, "the conversion stays");
}

#[test]
fn objects_that_are_being_deleted_are_released_from_our_finalizers() {
    let (ended, _server) = uninstall(being_deleted);
    ended.assert(
        0,
        &[
            "imagepulljobs shop/pull: released from apps.kruise.io/deletion-protection",
            "podprobemarkers shop/marker: released from kruise.io/node-pod-probe-cleanup",
        ],
    );
}

#[test]
fn a_request_that_keeps_its_pod_out_of_service_is_not_released_until_the_pod_is_gone() {
    let (ended, _server) = uninstall(with_a_recreation);
    ended.assert(1, &["shop/again keeps its pod out of service", "delete the pod"]);
    // The server has no such object to write, which is as good as released.
    let (ended, _server) = uninstall(after_the_pod);
    ended.assert(0, &["containerrecreaterequests shop/again: released"]);
}

#[test]
fn a_kind_that_cannot_be_listed_is_not_taken_for_absent() {
    let (ended, _server) = uninstall(forbidden);
    ended.assert(1, &["cannot list sidecarsets"]);
}

/// A link with the name of upstream's program, as in the image.
#[test]
fn under_the_name_of_upstreams_program_the_same_is_done() {
    let (folder, server) = (Folder::new(), ApiServer::start(with_workloads));
    let link = folder.path().join("helm_hook");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kruise"), &link).unwrap();
    let kubeconfig = folder.kubeconfig(server.address());
    let (_, path) = kubeconfig.split_once('=').unwrap();
    let output = std::process::Command::new(link)
        .env("KUBECONFIG", path)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("there still exists some clonesets in the cluster"),
        "{error}"
    );
    assert_eq!(output.status.code(), Some(1));
}
