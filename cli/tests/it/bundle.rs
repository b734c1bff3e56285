//! `kruise bundle` against a server that answers by path, with secrets wherever there may be some.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::command::{Ended, Folder};

/// Planted in each place that may have a secret.
const SECRET: &str = "hunter2-hunter2";
/// The same as the API has it in `data`.
const ENCODED: &str = "aHVudGVyMi1odW50ZXIy";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn container() -> Value {
    json!({
        "name": "main", "image": "web:1", "args": [SECRET], "command": ["sh", "-c", SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "readinessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
        "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
    })
}

fn metadata(namespace: &str, name: &str) -> Value {
    let owner =
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u"});
    json!({
        "namespace": namespace, "name": name, "uid": "u", "resourceVersion": "7", "generation": 2,
        "ownerReferences": [owner],
        "annotations": {LAST_APPLIED: json!({"spec": container()}).to_string(), "note": SECRET},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {format!("v:{SECRET}"): {}}}],
    })
}

fn template() -> Value {
    json!({"metadata": {"annotations": {"note": SECRET}}, "spec": {"containers": [container()]}})
}

/// The objects of a list.
fn items(objects: &[Value]) -> (u16, Value) {
    (200, json!({"metadata": {}, "items": objects}))
}

fn pod(namespace: &str, name: &str, labels: &Value) -> Value {
    let mut metadata = metadata(namespace, name);
    metadata["labels"] = labels.clone();
    let ended = json!({"terminated": {"reason": "Error", "exitCode": 1, "message": SECRET}});
    json!({
        "metadata": metadata,
        "spec": {"nodeName": "n1", "containers": [container()]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "probe", "status": "False", "message": SECRET}],
            "containerStatuses": [{"name": "manager", "restartCount": 1, "state": ended, "lastState": ended}],
        },
    })
}

fn webhooks() -> Value {
    let service =
        json!({"name": "kruise-webhook-service", "namespace": "kruise-system", "path": "/mutate-pod"});
    json!({"metadata": metadata("", "ours"), "webhooks": [
        {"name": "mpod.kb.io", "clientConfig": {"service": service, "caBundle": ENCODED}},
        {"name": "other.example.com", "clientConfig": {"url": format!("https://example.com/{SECRET}")}},
    ]})
}

/// An installation with objects. The daemonsets of its namespace may not be read.
fn answers(path: &str) -> Option<(u16, Value)> {
    match path {
        "/version" => return Some((200, json!({"gitVersion": "v1.34.2"}))),
        "/apis" => return Some((200, json!({"groups": [{"name": "apps.kruise.io"}]}))),
        "/apis/apps.kruise.io/v1beta1" => {
            let names = [
                "clonesets",
                "imagepulljobs",
                "sidecarsets",
                "resourcedistributions",
                "uniteddeployments",
            ];
            let resources = names.map(|name| json!({"name": name}));
            return Some((200, json!({"resources": resources})));
        }
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" => {
            let mut all = kruise_kinds::definitions("kruise-system");
            for definition in &mut all {
                definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!(ENCODED);
                definition["metadata"]["annotations"] = json!({LAST_APPLIED: SECRET});
                definition["status"] = json!({"storedVersions": ["v1alpha1", "v1beta1"]});
            }
            return Some(items(&all));
        }
        "/apis/apps.kruise.io/v1beta1/clonesets" => {
            let spec = json!({"replicas": 3, "template": template(), "volumeClaimTemplates": []});
            let status = json!({"replicas": 1, "updateRevision": "web-1"});
            return Some(items(&[
                json!({"metadata": metadata("shop", "web"), "spec": spec, "status": status}),
            ]));
        }
        "/apis/apps.kruise.io/v1beta1/imagepulljobs" => {
            // To explain it, its Secret would be read.
            let spec = json!({"image": "registry.example.com/web:1", "pullSecrets": ["registry"]});
            let status = json!({"desired": 1});
            return Some(items(&[
                json!({"metadata": metadata("shop", "images"), "spec": spec, "status": status}),
            ]));
        }
        "/apis/apps.kruise.io/v1beta1/sidecarsets" => {
            let patch = json!([{"annotations": {"note": SECRET}, "patchPolicy": "Retain"}]);
            let spec = json!({"containers": [container()], "patchPodMetadata": patch});
            return Some(items(&[json!({"metadata": metadata("", "logs"), "spec": spec})]));
        }
        "/apis/apps.kruise.io/v1beta1/resourcedistributions" => {
            let resource = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copied"},
                "data": {"name": ENCODED}, "stringData": {"name": SECRET}});
            return Some(items(&[
                json!({"metadata": metadata("", "copies"), "spec": {"resource": resource}}),
            ]));
        }
        "/apis/apps.kruise.io/v1beta1/uniteddeployments" => {
            let subset = json!({"name": "zone-a", "patch": {"spec": {"containers": [container()]}}});
            let spec = json!({"template": {"cloneSetTemplate": {"spec": {"template": template()}}},
                "topology": {"subsets": [subset]}});
            return Some(items(&[
                json!({"metadata": metadata("shop", "zones"), "spec": spec}),
            ]));
        }
        "/api/v1/pods" => return Some(items(&[pod("shop", "web-1", &json!({"app": "web"}))])),
        "/apis/apps/v1/controllerrevisions" => {
            let data = json!({"spec": {"template": template()}});
            return Some(items(&[
                json!({"metadata": metadata("shop", "web-1"), "data": data}),
            ]));
        }
        "/api/v1/events" => {
            let event = |reason: &str, message: &str| {
                let about = json!({"kind": "Pod", "namespace": "shop", "name": "web-1"});
                json!({"metadata": {"namespace": "shop", "name": reason}, "reason": reason, "message": message,
                    "involvedObject": about, "source": {"component": "kubelet"}})
            };
            let foreign = json!({"metadata": {"name": "f"}, "involvedObject": {"kind": "Pod", "name": "other"}, "message": SECRET});
            return Some(items(&[
                event("Unhealthy", SECRET),
                event("Pulled", "pulled the image"),
                foreign,
            ]));
        }
        _ => {}
    }
    if path.ends_with("webhookconfigurations") {
        return Some(items(&[webhooks()]));
    }
    let (_, name) = path.split_once("/namespaces/kruise-system/")?;
    in_its_namespace(name)
}

/// The namespace of the installation.
fn in_its_namespace(name: &str) -> Option<(u16, Value)> {
    let manager = pod(
        "kruise-system",
        "kruise-controller-manager-1",
        &json!({"control-plane": "controller-manager"}),
    );
    match name {
        "deployments" => {
            let spec = json!({"template": {"spec": {"containers": [container()]}}});
            let settings =
                json!({"args": ["--v=4"], "name": "manager", "env": [{"name": "A", "value": SECRET}]});
            let ours = json!({"template": {"spec": {"containers": [settings]}}});
            Some(items(&[
                json!({"metadata": metadata("kruise-system", "kruise-controller-manager"), "spec": ours}),
                json!({"metadata": metadata("kruise-system", "other"), "spec": spec}),
            ]))
        }
        "daemonsets" => Some((
            403,
            json!({"kind": "Status", "code": 403, "message": "daemonsets are forbidden"}),
        )),
        "pods" => Some(items(&[manager])),
        "leases" => {
            let spec = json!({"holderIdentity": "kruise-controller-manager-1"});
            Some(items(&[
                json!({"metadata": metadata("kruise-system", "kruise-manager"), "spec": spec}),
            ]))
        }
        "configmaps/kruise-configuration" => Some((
            200,
            json!({"data": {"PPS_Watch_Custom_Workload_WhiteList": "{}"}}),
        )),
        "pods/kruise-controller-manager-1/log" => Some((200, json!("a line of the log"))),
        "pods/kruise-controller-manager-1:8080/proxy/metrics" => Some((200, json!("up 1"))),
        _ => None,
    }
}

fn bundle(folder: &Folder, server: &ApiServer, file: &Path) -> Ended {
    let kubeconfig = folder.kubeconfig(server.address());
    folder.kruise(&["bundle", "--output", &file.display().to_string(), &kubeconfig])
}

/// The files of the archive with their contents, by their paths in its folder.
fn unpacked(file: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap()));
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let path = entry
            .path()
            .unwrap()
            .strip_prefix("kruise-bundle")
            .unwrap()
            .display()
            .to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (path, text)
    };
    archive.entries().unwrap().map(read).collect()
}

#[test]
fn a_bundle_has_what_helps_and_no_secret() {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    let file = folder.path().join("bundle.tar.gz");
    bundle(&folder, &server, &file).assert(0, &["has 5 objects and 1 of their pods", "errors.txt"]);
    let files = unpacked(&file);
    for (path, text) in &files {
        for planted in [SECRET, ENCODED, LAST_APPLIED_TEXT] {
            assert!(!text.contains(planted), "{planted} is in {path}: {text}");
        }
    }
    for (path, part) in [
        ("version.json", "v1.34.2"),
        ("groups.json", "apps.kruise.io"),
        ("installation/definitions.json", "storedVersions"),
        ("installation/deployments.json", "--v=4"),
        ("installation/pods.json", "kruise-controller-manager-1"),
        ("installation/leases.json", "holderIdentity"),
        (
            "installation/settings.json",
            "PPS_Watch_Custom_Workload_WhiteList",
        ),
        (
            "installation/mutatingwebhookconfigurations.json",
            "\"hasCaBundle\": true",
        ),
        ("installation/validatingwebhookconfigurations.json", "/mutate-pod"),
        ("objects/clonesets.json", "\"updateRevision\": \"web-1\""),
        ("objects/clonesets.json", "PASSWORD"),
        ("objects/sidecarsets.json", "web:1"),
        ("objects/resourcedistributions.json", "copied"),
        ("objects/uniteddeployments.json", "zone-a"),
        ("objects/pods.json", "web-1"),
        ("objects/controllerrevisions.json", "web-1"),
        ("objects/events.json", "pulled the image"),
        ("objects/events.json", "Unhealthy"),
        (
            "logs/manager/kruise-controller-manager-1.log",
            "a line of the log",
        ),
        (
            "logs/manager/kruise-controller-manager-1.previous.log",
            "a line of the log",
        ),
        ("metrics/kruise-controller-manager-1.txt", "up 1"),
        (
            "summary.txt",
            "1 of 1 pods are ready; the leader is kruise-controller-manager-1",
        ),
        ("summary.txt", "clonesets: 1, of them 1 not settled"),
        ("summary.txt", "imagepulljobs: 1, of them 1 not settled"),
        (
            "summary.txt",
            "clonesets.apps.kruise.io may be stored in 2 versions",
        ),
        ("errors.txt", "daemonsets are forbidden"),
    ] {
        assert!(
            files.get(path).is_some_and(|text| text.contains(part)),
            "{part} in {path}: {:?}",
            files.get(path)
        );
    }
    let requests = server.requests();
    assert!(
        requests.iter().all(|request| request.starts_with("GET ")),
        "{requests:?}"
    );
    assert!(
        requests.iter().all(|request| !request.contains("/secrets")),
        "{requests:?}"
    );
}

/// A part of the annotation of kubectl.
const LAST_APPLIED_TEXT: &str = "preStop\\\"";

#[test]
fn lists_are_cut_and_the_cut_is_named() {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    let file = folder.path().join("bundle.tar.gz");
    let kubeconfig = folder.kubeconfig(server.address());
    let line = [
        "bundle",
        "--max-objects=1",
        "--max-log-bytes=4",
        "--output",
        &file.display().to_string(),
        &kubeconfig,
    ];
    folder.kruise(&line).assert(0, &["errors.txt"]);
    let files = unpacked(&file);
    let definitions: Vec<Value> = serde_json::from_str(&files["installation/definitions.json"]).unwrap();
    assert_eq!(definitions.len(), 1);
    assert!(files["errors.txt"].contains("customresourcedefinitions: only the first 1 are here"));
    assert_eq!(files["logs/manager/kruise-controller-manager-1.log"].len(), 4);
}

/// Of the namespaces `shop` and `default`: an event about a SidecarSet, those of a series about a CloneSet,
/// and one about an object of another namespace.
fn of_a_namespace(path: &str) -> Option<(u16, Value)> {
    let event = |reason: &str, kind: &str, namespace: &str| {
        let about = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "namespace": namespace, "name": "x"});
        json!({"metadata": {"name": reason}, "reason": reason, "involvedObject": about})
    };
    match path {
        "/api/v1/namespaces/shop/events" => {
            let mut series = event("Repeated", "CloneSet", "shop");
            series["eventTime"] = json!("2026-01-01T00:00:00.000000Z");
            series["series"] = json!({"count": 7, "lastObservedTime": "2026-01-01T02:00:00.500000Z"});
            let mut single = event("Once", "CloneSet", "shop");
            single["lastTimestamp"] = json!("2026-01-01T02:00:00Z");
            Some(items(&[series, single]))
        }
        "/api/v1/namespaces/default/events" => {
            let mut of_cluster = event("OfTheCluster", "SidecarSet", "");
            of_cluster["lastTimestamp"] = json!("2026-01-01T03:00:00Z");
            Some(items(&[of_cluster, event("OfAnother", "CloneSet", "default")]))
        }
        _ => answers(path),
    }
}

#[test]
fn events_of_a_namespace_come_with_those_about_objects_of_the_cluster_in_the_order_in_which_they_were_seen_last()
 {
    let (folder, server) = (Folder::new(), ApiServer::start(of_a_namespace));
    let file = folder.path().join("bundle.tar.gz");
    let kubeconfig = folder.kubeconfig(server.address());
    let output = file.display().to_string();
    folder
        .kruise(&["bundle", "--namespace", "shop", "--output", &output, &kubeconfig])
        .assert(0, &["errors.txt"]);
    let events: Vec<Value> = serde_json::from_str(&unpacked(&file)["objects/events.json"]).unwrap();
    let reasons: Vec<&str> = events
        .iter()
        .map(|event| event["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["Once", "Repeated", "OfTheCluster"]);
    let series = json!({"count": 7, "lastObservedTime": "2026-01-01T02:00:00.500000Z"});
    assert_eq!(events[1]["series"], series);
}

#[test]
fn a_file_is_not_overwritten_and_an_unreachable_cluster_leaves_none() {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    let file = folder.path().join("bundle.tar.gz");
    std::fs::write(&file, "mine").unwrap();
    bundle(&folder, &server, &file).assert(1, &["cannot create"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(server.paths(), Vec::<String>::new());
    let kubeconfig = folder.kubeconfig(crate::command::free_address());
    let other = folder.path().join("other.tar.gz");
    folder
        .kruise(&["bundle", "--output", &other.display().to_string(), &kubeconfig])
        .assert(1, &["cannot reach"]);
    assert!(!other.exists());
}
