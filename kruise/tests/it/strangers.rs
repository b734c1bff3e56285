//! A stranger who reaches the port of the webhooks and has no token: what its reviews change, and what it learns.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kruise_admission::table::webhooks;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};

use crate::h2;
use crate::managers::{Cluster, MUTATING, Manager};

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const BUDGET: &str = "/apis/policy.kruise.io/v1beta1/namespaces/office/podunavailablebudgets/guard";
const PODS: &str = "/api/v1/namespaces/office/pods";

/// A pod of the office, which serves, and whose hook holds a secret.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "office", "labels": {"app": "web"},
            "annotations": {"pub.kruise.io/related-pub": "guard", "kruise.io/related-pub": "guard"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "web:1",
            "lifecycle": {"preStop": {"exec": {"command": ["drain", "--token=hunter2"]}}}}]},
    })
}

/// A cluster with a budget that lets one of three pods go, as soon as its manager has counted them.
fn office() -> (Cluster, Manager) {
    let named =
        |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    let budget = json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
        "metadata": {"name": "guard", "namespace": "office"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1, "protectTotalReplicas": 3}});
    let names = ["web-0", "web-1", "web-2"];
    let mut objects = vec![
        ("/api/v1/namespaces", named("Namespace", "office")),
        ("/api/v1/nodes", named("Node", "n1")),
        (BUDGET.rsplit_once('/').unwrap().0, budget),
    ];
    objects.extend(names.map(|name| (PODS, pod(name))));
    let cluster = Cluster::with(&objects);
    for name in names {
        let status = json!({"status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "main", "containerID": "containerd://1", "image": "web:1", "imageID": "web:1",
                "ready": true, "restartCount": 0, "state": {"running": {}}, "lastState": {}}]}});
        cluster.patch(&format!("{PODS}/{name}/status"), &status);
    }
    let mut manager = Manager::start(&cluster, &[]);
    manager.wait_ready();
    cluster.until("the budget is counted", |cluster| {
        cluster.get(BUDGET)["status"]["unavailableAllowed"] == 1
    });
    (cluster, manager)
}

/// The versions of what reviews may change.
fn known(cluster: &Cluster) -> Vec<(String, String)> {
    let paths = [
        BUDGET.to_owned(),
        format!("{MUTATING}/kruise-mutating-webhook-configuration"),
        format!("{VALIDATING}/kruise-validating-webhook-configuration"),
    ];
    let version = |path: String| {
        let object = cluster.get(&path);
        let version = object["metadata"]["resourceVersion"].as_str();
        (version.unwrap_or_default().to_owned(), path)
    };
    paths.into_iter().map(version).collect()
}

/// Sends reviews over one connection; returns the answers.
fn sends(cluster: &Cluster, manager: &Manager, reviews: Vec<(String, Value)>) -> Vec<String> {
    let authority = cluster.authority();
    let address = manager.webhooks;
    cluster.runtime.block_on(async {
        let name = ServerName::try_from("kruise-webhook-service.kruise-system.svc").unwrap();
        let stream = h2::connect(("127.0.0.1", address.port()), name, h2::config(&authority)).await;
        let mut client = h2::client(stream.unwrap()).await.unwrap();
        let mut answers = Vec::new();
        for (path, request) in reviews {
            let review =
                json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request});
            let request = Request::post(format!("https://webhooks{path}"))
                .header("content-type", "application/json")
                .body(Full::new(review.to_string().into()))
                .unwrap();
            let response = client.send_request(request).await.unwrap();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            answers.push(String::from_utf8(body.to_vec()).unwrap());
        }
        answers
    })
}

fn deletion(pod: &Value) -> (String, Value) {
    let request = json!({"uid": "r", "operation": "DELETE", "namespace": "office", "name": pod["metadata"]["name"],
        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "oldObject": pod});
    ("/validate-pod".to_owned(), request)
}

fn creation(path: &str, group: &str, object: &Value) -> (String, Value) {
    let request = json!({"uid": "r", "operation": "CREATE", "namespace": object["metadata"]["namespace"],
        "name": object["metadata"]["name"], "object": object,
        "kind": {"group": group, "version": "v1beta1", "kind": object["kind"]}});
    (path.to_owned(), request)
}

#[test]
fn forged_reviews_close_no_budget_and_widen_no_condition() {
    let (cluster, manager) = office();
    let before = known(&cluster);
    let mut reviews = Vec::new();
    for number in 0..20 {
        // A pod that does not exist, and another one of a name that does.
        for name in [format!("db-{number}"), "web-0".to_owned()] {
            let mut pod = pod(&name);
            pod["metadata"]["uid"] = json!(format!("forged-{number}"));
            pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
            reviews.push(deletion(&pod));
        }
        let budget = json!({"kind": "PodUnavailableBudget", "apiVersion": "policy.kruise.io/v1beta1",
            "metadata": {"name": "any", "namespace": format!("nowhere-{number}")},
            "spec": {"selector": {"matchLabels": {"app": format!("any-{number}")}}, "maxUnavailable": 1}});
        reviews.push(creation(
            "/validate-policy-kruise-io-podunavailablebudget",
            "policy.kruise.io",
            &budget,
        ));
    }
    for answer in sends(&cluster, &manager, reviews) {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["response"]["allowed"], true, "{answer}");
    }
    assert_eq!(known(&cluster), before);
    // The pod that is there is another matter: nobody can tell whether its deletion is one of the API server's.
    let there = cluster.get(&format!("{PODS}/web-0"));
    sends(&cluster, &manager, vec![deletion(&there)]);
    assert_ne!(known(&cluster), before, "a real one is charged");
}

#[test]
fn a_request_for_the_containers_of_a_pod_does_not_tell_its_hooks() {
    let (cluster, manager) = office();
    let request = json!({"kind": "ContainerRecreateRequest", "apiVersion": "apps.kruise.io/v1beta1",
        "metadata": {"name": "any", "namespace": "office"},
        "spec": {"podName": "web-0", "containers": [{"name": "main"}]}});
    let review = creation(
        "/mutate-apps-kruise-io-containerrecreaterequest",
        "apps.kruise.io",
        &request,
    );
    let [answer] = sends(&cluster, &manager, vec![review]).try_into().unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let patch = answer["response"]["patch"].as_str().unwrap();
    let patch = String::from_utf8(STANDARD.decode(patch).unwrap()).unwrap();
    assert!(patch.contains("containerd://"), "{patch}");
    assert!(!patch.contains("hunter2"), "{patch}");
}

#[test]
fn no_path_is_ended_by_what_a_stranger_sends() {
    let (cluster, manager) = office();
    let before = known(&cluster);
    let shapes = [
        json!(null),
        json!([]),
        json!({"metadata": []}),
        json!({"metadata": {"name": 7}, "spec": "text", "status": []}),
        json!({"metadata": {"name": "a", "namespace": "nowhere"}, "spec": {}}),
    ];
    let mut reviews = Vec::new();
    for webhook in webhooks(kruise_kinds::webhooks()) {
        for path in webhook.paths() {
            for operation in ["CREATE", "UPDATE", "DELETE", "CONNECT"] {
                for shape in &shapes {
                    let request = json!({"uid": "r", "operation": operation, "namespace": "nowhere", "name": "a",
                        "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": "Any"},
                        "object": shape, "oldObject": shape});
                    reviews.push((path.clone(), request));
                }
            }
        }
    }
    let sent = reviews.len();
    let answers = sends(&cluster, &manager, reviews);
    assert_eq!(answers.len(), sent);
    for answer in answers {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["response"]["allowed"].is_boolean(), "{answer}");
    }
    assert_eq!(known(&cluster), before);
    assert!(!manager.log().contains("panicked"), "{}", manager.log());
}
