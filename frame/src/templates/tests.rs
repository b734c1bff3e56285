use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kruise_runtime::metrics::Metrics;
use kube_client::client::Body;
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::played;

/// A path with its query, and the body.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A client whose server answers each request with this code and body, or with code 0 never.
fn client(code: u16, body: Value) -> (Client, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, body) = (seen.clone(), body.clone());
        async move {
            let path = request.uri().to_string();
            let bytes = request.into_body().collect().await.unwrap().to_bytes();
            let object = serde_json::from_slice(&bytes).unwrap();
            seen.lock().unwrap().push((path, object));
            if code == 0 {
                pending::<()>().await;
            }
            let body = Full::new(Bytes::from(body.to_string()));
            Ok::<_, std::io::Error>(Response::builder().status(code).body(body).unwrap())
        }
    });
    (played::client_of(service), asked)
}

fn refusal(fields: &[&str]) -> Value {
    let cause =
        |field: &&str| json!({"reason": "FieldValueInvalid", "message": "Invalid value: 1", "field": field});
    let causes: Vec<Value> = fields.iter().map(cause).collect();
    json!({"kind": "Status", "reason": "Invalid", "message": "is invalid", "details": {"causes": causes}})
}

/// What comes of an answer: the fields that are wrong, and how it is counted.
async fn judged(code: u16, body: Value) -> (Vec<String>, String) {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &[]).pods;
    let judge = Judge::new(client(code, body).0, "own").measured(metrics);
    let causes = judge.causes("shop", "{}").await;
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let counted = text.lines().find_map(|line| {
        let rest = line.strip_prefix("kruise_pod_template_trials_total{result=\"")?;
        rest.strip_suffix("\"} 1")
    });
    let fields = causes.into_iter().map(|cause| cause.field).collect();
    (fields, counted.unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn only_422_with_causes_of_the_template_is_a_verdict() {
    let fields = [
        "template.spec.dnsPolicy",
        "template.labels",
        "template",
        "metadata.name",
        "templates.x",
    ];
    let (found, counted) = judged(422, refusal(&fields)).await;
    assert_eq!(found, ["spec.dnsPolicy", "labels", ""]);
    assert_eq!(counted, "refused");
    let bare = json!({"kind": "Status", "message": "of a webhook"});
    for (code, body, expected) in [
        (201, json!({}), "accepted"),
        (422, bare.clone(), "unanswered"),
        (422, refusal(&["metadata.name"]), "unanswered"),
        (400, refusal(&fields), "unanswered"),
        (403, refusal(&fields), "forbidden"),
        (404, bare.clone(), "unanswered"),
        (429, bare.clone(), "unanswered"),
        (500, refusal(&fields), "unanswered"),
        (503, bare.clone(), "unanswered"),
    ] {
        let (found, counted) = judged(code, body).await;
        assert_eq!((found, counted.as_str()), (Vec::new(), expected), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_is_waited_for_a_second() {
    let begun = Instant::now();
    let (found, counted) = judged(0, Value::Null).await;
    assert_eq!((found, counted.as_str()), (Vec::new(), "unanswered"));
    assert_eq!(begun.elapsed(), LIMIT);
}

#[tokio::test]
async fn a_template_is_tried_in_the_namespace_of_its_object_and_nothing_is_stored() {
    let (client, asked) = client(201, json!({}));
    let judge = Judge::new(client, "own");
    let template = json!({"spec": {"dnsPolicy": "Default"}});
    judge.causes("shop", &template.to_string()).await;
    judge.causes("", "{}").await;
    let asked = asked.lock().unwrap();
    let (path, object) = &asked[0];
    assert!(
        path.ends_with("/api/v1/namespaces/shop/podtemplates?dryRun=All"),
        "{path}"
    );
    assert_eq!(object["kind"], "PodTemplate");
    assert_eq!(object["template"], template);
    let (path, object) = &asked[1];
    assert!(
        path.ends_with("/api/v1/namespaces/own/podtemplates?dryRun=All"),
        "{path}"
    );
    assert_eq!(object["metadata"]["namespace"], "own");
}
