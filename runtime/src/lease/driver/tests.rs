use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube_client::client::Body;
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tower::service_fn;

use super::{Ending, Found, find, lead};
use crate::{Client, client, lease::Settings, metrics::Metrics};

/// A server of one lease: applies a write at once, and responds after a delay.
#[derive(Default)]
struct Server {
    lease: Option<Value>,
    requests: Vec<(Method, Instant)>,
    events: Vec<Value>,
}

impl Server {
    fn answer(&mut self, method: &Method, body: &[u8]) -> (u16, Value) {
        self.requests.push((method.clone(), Instant::now()));
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        if *method == Method::GET {
            return match &self.lease {
                Some(lease) => (200, lease.clone()),
                None => (404, json!({"reason": "NotFound"})),
            };
        }
        let mut lease: Value = serde_json::from_slice(body).unwrap();
        if self.lease.as_ref().and_then(version) != version(&lease) {
            return (409, json!({"reason": "Conflict"}));
        }
        lease["metadata"]["resourceVersion"] = json!(self.requests.len().to_string());
        self.lease = Some(lease.clone());
        (200, lease)
    }

    fn count(&self, method: &Method) -> usize {
        self.requests.iter().filter(|(of, _)| of == method).count()
    }
}

/// A client of that server; `delay(n)` is the delay of the n-th response.
fn client_of(delay: fn(usize) -> Duration) -> (Client, Arc<Mutex<Server>>) {
    let server = Arc::new(Mutex::new(Server::default()));
    let shared = server.clone();
    let service = service_fn(move |request: Request<Body>| {
        let shared = shared.clone();
        async move {
            let (head, body) = request.into_parts();
            let body: Bytes = body.collect().await.unwrap().to_bytes();
            let (wait, (code, answer)) = {
                let mut server = shared.lock().unwrap();
                if head.uri.path() == "/api/v1/namespaces/n/events" {
                    let event: Value = serde_json::from_slice(&body).unwrap();
                    server.events.push(event.clone());
                    (Duration::ZERO, (201, event))
                } else {
                    (delay(server.requests.len()), server.answer(&head.method, &body))
                }
            };
            tokio::time::sleep(wait).await;
            let response = Response::builder().status(code);
            Ok::<_, std::io::Error>(
                response
                    .body(Body::from(answer.to_string().into_bytes()))
                    .unwrap(),
            )
        }
    });
    let settings = client::Settings::of_a_test(Duration::from_secs(30));
    let client = Client::new(kube_client::Client::new(service, "default"), settings);
    (client, server)
}

fn metrics() -> Metrics {
    Metrics::register(&mut Registry::default(), &[])
}

fn settings() -> Settings {
    Settings {
        namespace: "n".into(),
        name: "l".into(),
        identity: "us".into(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
        annotations: [("leader".to_owned(), "us".to_owned())].into(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_renew_deadline_runs_from_when_a_renewal_is_sent() {
    // The response to the read comes at once, that to the write after eight seconds. Later requests have none.
    let (client, server) = client_of(|n| Duration::from_secs([0, 8].get(n).copied().unwrap_or(1000)));
    let (_keep, stop) = watch::channel(false);
    let metrics = metrics();
    let ending = lead(&client, settings(), &metrics, stop, |_| {}).await;
    assert!(matches!(ending, Ending::Lost(_)), "{ending:?}");
    let (_, applied) = server.lock().unwrap().requests[1];
    assert_eq!(applied.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_leader_keeps_the_lease_with_responses_that_take_most_of_the_deadline() {
    let (client, server) = client_of(|_| Duration::from_secs(4));
    let (_keep, stop) = watch::channel(false);
    let metrics = metrics();
    let minutes = timeout(
        Duration::from_mins(5),
        lead(&client, settings(), &metrics, stop, |_| {}),
    );
    assert!(minutes.await.is_err(), "it ended");
    let server = server.lock().unwrap();
    assert_eq!(server.count(&Method::GET), 1, "a renewal reads the lease first");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_reads_it_and_stops() {
    let (client, server) = client_of(|_| Duration::ZERO);
    let (_keep, stop) = watch::channel(false);
    let metrics = metrics();
    let leading = lead(&client, settings(), &metrics, stop, |_| {});
    let robbery = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut server = server.lock().unwrap();
        let lease = server.lease.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!("thief");
        lease["metadata"]["resourceVersion"] = json!("stolen");
        Instant::now()
    };
    let (ending, robbed) = tokio::join!(leading, robbery);
    assert_eq!(ending, Ending::Lost("somebody else holds it".into()));
    assert!(robbed.elapsed() < Duration::from_secs(5), "{robbed:?}");
    assert_eq!(
        server.lock().unwrap().lease.as_ref().unwrap()["spec"]["holderIdentity"],
        "thief"
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_only_labelled_keeps_it() {
    let (client, server) = client_of(|_| Duration::ZERO);
    let (keep, stop) = watch::channel(false);
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &[]);
    let leading = lead(&client, settings(), &metrics, stop, |_| {});
    let labelling = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        {
            let mut server = server.lock().unwrap();
            let lease = server.lease.as_mut().unwrap();
            lease["metadata"]["labels"] = json!({"a": "b"});
            lease["metadata"]["resourceVersion"] = json!("labelled");
        }
        tokio::time::sleep(Duration::from_mins(1)).await;
        keep.send(true).unwrap();
    };
    let (ending, ()) = tokio::join!(leading, labelling);
    assert_eq!(ending, Ending::Stopped);
    let server = server.lock().unwrap();
    let lease = server.lease.as_ref().unwrap();
    assert_eq!(lease["metadata"]["labels"]["a"], "b");
    assert_eq!(lease["metadata"]["annotations"]["leader"], "us");
    assert_eq!(lease["spec"]["holderIdentity"], "");
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert!(
        text.contains("leader_election_slowpath_total{name=\"l\"} 1\n"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_emits_one_event_on_the_lease() {
    let (client, server) = client_of(|_| Duration::ZERO);
    let (_keep, stop) = watch::channel(false);
    let metrics = metrics();
    let minute = timeout(
        Duration::from_mins(1),
        lead(&client, settings(), &metrics, stop, |_| {}),
    );
    assert!(minute.await.is_err(), "it ended");
    let server = server.lock().unwrap();
    let [event] = server.events.as_slice() else {
        panic!("{:?}", server.events)
    };
    let shown = [
        "/reason",
        "/message",
        "/type",
        "/source/component",
        "/involvedObject/apiVersion",
        "/involvedObject/kind",
        "/involvedObject/name",
        "/involvedObject/namespace",
    ]
    .map(|pointer| event.pointer(pointer).and_then(Value::as_str).unwrap_or("-"));
    assert_eq!(
        shown,
        [
            "LeaderElection",
            "us became leader",
            "Normal",
            "us",
            "coordination.k8s.io/v1",
            "Lease",
            "l",
            "n"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_knows_whether_another_replica_led_since_an_earlier_read() {
    let (client, server) = client_of(|_| Duration::ZERO);
    let metrics = metrics();
    let take = async |before: &Found| {
        let (keep, stop) = watch::channel(false);
        let mut alone = None;
        let acquired = |found: Found| {
            alone = Some(before.is_unheld_until(&found));
            keep.send(true).unwrap();
        };
        assert_eq!(
            lead(&client, settings(), &metrics, stop, acquired).await,
            Ending::Stopped
        );
        alone.unwrap()
    };
    let absent = find(&client, &settings()).await.unwrap();
    assert!(take(&absent).await, "there was no lease");
    assert!(!take(&absent).await, "there was one meanwhile");
    let given_back = find(&client, &settings()).await.unwrap();
    assert!(take(&given_back).await, "it was given back before");
    {
        let mut server = server.lock().unwrap();
        let lease = server.lease.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!("another");
        lease["spec"]["leaseDurationSeconds"] = json!(15);
        lease["metadata"]["resourceVersion"] = json!("held");
    }
    let held = find(&client, &settings()).await.unwrap();
    assert!(!take(&held).await, "who has it may write until it has run out");
}
