use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use kruise_plan_kit::{ResourceId, StatusPatch, Target};
use kube_client::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::StatusWriter;
use crate::{Client, Served, client};

/// An object on a server: a patch with another version is a conflict.
#[derive(Default)]
struct Kept {
    version: u64,
    status: Value,
    refused: usize,
}

type Server = Arc<Mutex<Kept>>;

fn served() -> Arc<Served> {
    Arc::new([(&kruise_api::cloneset::KIND, "v1beta1")].into_iter().collect())
}

fn server(version: u64) -> (Client, Server) {
    let kept = Server::default();
    kept.lock().unwrap().version = version;
    let server = Arc::clone(&kept);
    let service = service_fn(move |request: Request<Body>| {
        let server = Arc::clone(&server);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let patch: Value = serde_json::from_slice(&body).unwrap();
            let mut kept = server.lock().unwrap();
            let version = json!(kept.version.to_string());
            let current = patch["metadata"]["resourceVersion"] == version;
            let (code, body) = if current {
                kept.version += 1;
                kept.status = patch["status"].clone();
                (
                    200,
                    json!({"metadata": {"resourceVersion": kept.version.to_string()}}),
                )
            } else {
                kept.refused += 1;
                (409, json!({"reason": "Conflict", "message": "changed"}))
            };
            let response = Response::builder().status(code);
            Ok::<_, std::io::Error>(response.body(Body::from(body.to_string().into_bytes())).unwrap())
        }
    });
    let settings = client::Settings::of_a_test(Duration::from_mins(1));
    (
        Client::new(kube_client::Client::new(service, "default"), settings),
        kept,
    )
}

fn patch(version: u64, available: i32) -> StatusPatch {
    StatusPatch {
        target: Target {
            resource: kruise_api::cloneset::RESOURCE,
            namespace: "n".into(),
            name: "web".into(),
        },
        version: version.to_string(),
        patch: json!({"status": {"availableReplicas": available}}),
        urgent: false,
    }
}

/// A client whose first request panics.
fn panicking_server(requests: &Arc<Mutex<usize>>) -> Client {
    let requests = Arc::clone(requests);
    let service = service_fn(move |_: Request<Body>| {
        let requests = Arc::clone(&requests);
        async move {
            let times = {
                let mut requests = requests.lock().unwrap();
                *requests += 1;
                *requests
            };
            assert_ne!(times, 1, "injected");
            let body = json!({"metadata": {"resourceVersion": "8"}}).to_string();
            Ok::<_, std::io::Error>(Response::new(Body::from(body.into_bytes())))
        }
    });
    let settings = client::Settings::of_a_test(Duration::from_mins(1));
    Client::new(kube_client::Client::new(service, "default"), settings)
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_status_computed_from_an_older_object_is_never_merged_into_a_newer_one() {
    let (client, kept) = server(7);
    let writer = StatusWriter::new(client, served());
    let task = tokio::spawn(writer.clone().run());

    // The object has changed since version 6: a conflict.
    writer.submit(&"web", Some(patch(6, 1)));
    until(|| kept.lock().unwrap().refused == 1).await;
    assert_eq!(kept.lock().unwrap().status, Value::Null);

    writer.submit(&"web", Some(patch(7, 5)));
    until(|| kept.lock().unwrap().version == 8).await;
    // Computed before the cache had version 8: it is not sent.
    writer.submit(&"web", Some(patch(7, 6)));
    writer.stop();
    task.await.unwrap();
    let kept = kept.lock().unwrap();
    assert_eq!((&kept.status["availableReplicas"], kept.refused), (&json!(5), 1));
}

#[tokio::test]
async fn a_status_whose_write_panicked_is_written_again() {
    let requests = Arc::default();
    let writer = StatusWriter::new(panicking_server(&requests), served());
    let task = tokio::spawn(writer.clone().run());
    writer.submit(&"web", Some(patch(7, 5)));
    let again = until(|| *requests.lock().unwrap() == 2);
    tokio::time::timeout(Duration::from_mins(1), again).await.unwrap();
    writer.stop();
    task.await.unwrap();
}

/// What a server got: the path, the version that the patch is for, and the patch without it.
type Got = (String, Value, Value);

/// A server that takes every patch, and whose object gets the next version each time.
fn recording_server() -> (Client, Arc<Mutex<Vec<Got>>>) {
    let got = Arc::<Mutex<Vec<Got>>>::default();
    let record = Arc::clone(&got);
    let service = service_fn(move |request: Request<Body>| {
        let record = Arc::clone(&record);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut patch: Value = serde_json::from_slice(&body).unwrap();
            let metadata = patch["metadata"].as_object_mut().unwrap();
            let version = metadata.remove("resourceVersion").unwrap();
            let next = version.as_str().unwrap().parse::<u64>().unwrap() + 1;
            record.lock().unwrap().push((path, version, patch));
            let stored = json!({"metadata": {"resourceVersion": next.to_string()}}).to_string();
            Ok::<_, std::io::Error>(Response::new(Body::from(stored.into_bytes())))
        }
    });
    let settings = client::Settings::of_a_test(Duration::from_mins(1));
    (
        Client::new(kube_client::Client::new(service, "default"), settings),
        got,
    )
}

/// What is sent for this status of a ContainerRecreateRequest.
async fn sent(version: &'static str, status: Value) -> Vec<Got> {
    const REQUESTS: ResourceId = kruise_api::containerrecreaterequest::RESOURCE;
    let (client, got) = recording_server();
    let writer = StatusWriter::new(
        client,
        Arc::new(
            [(&kruise_api::containerrecreaterequest::KIND, version)]
                .into_iter()
                .collect(),
        ),
    );
    let task = tokio::spawn(writer.clone().run());
    let patch = StatusPatch {
        target: Target {
            resource: REQUESTS,
            namespace: "n".into(),
            name: "r".into(),
        },
        version: "7".into(),
        patch: json!({ "status": status }),
        urgent: true,
    };
    writer.submit(&"r", Some(patch));
    writer.stop();
    task.await.unwrap();
    got.lock().unwrap().clone()
}

#[tokio::test]
async fn what_the_served_version_has_in_annotations_is_written_there_and_a_status_only_if_there_is_one() {
    let entry = json!([{"name": "a", "ready": true, "restartCount": 1}]);
    let annotations = json!({"metadata": {"annotations": {
        "crr.apps.kruise.io/sync-container-statuses": entry.to_string()}}});
    let path = |version: &str, part: &str| {
        format!("/apis/apps.kruise.io/{version}/namespaces/n/containerrecreaterequests/r{part}")
    };
    let snapshot = json!({ "containerStatusSnapshot": entry });
    let main = |at: &str| (path("v1alpha1", ""), json!(at), annotations.clone());
    assert_eq!(sent("v1alpha1", snapshot.clone()).await, [main("7")]);
    let both = json!({"containerStatusSnapshot": entry, "phase": "Recreating"});
    let status = json!({"metadata": {}, "status": {"phase": "Recreating"}});
    assert_eq!(
        sent("v1alpha1", both).await,
        [(path("v1alpha1", "/status"), json!("7"), status), main("8")]
    );
    let whole = json!({"metadata": {}, "status": snapshot});
    assert_eq!(
        sent("v1beta1", snapshot).await,
        [(path("v1beta1", "/status"), json!("7"), whole)]
    );
}
