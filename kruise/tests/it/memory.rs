//! Memory of a manager with large objects in its cluster, and with strangers who send what is large, read nothing,
//! or both. The limit is that of the printed deployment, told by `GOMEMLIMIT`: a control group needs rights that a
//! test does not have.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use serde_json::json;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::h2;
use crate::managers::{Cluster, Manager};

/// `resources.limits.memory` of the printed deployment.
const LIMIT: usize = 512 << 20;
const SERVICE: &str = "kruise-webhook-service.kruise-system.svc";

type Body = BoxBody<Bytes, Infallible>;
type Client = SendRequest<Body>;

/// A client at this address of the machine that accepts `window` bytes of each answer before it reads them.
async fn client(from: [u8; 4], manager: SocketAddr, config: Arc<ClientConfig>, window: u32) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let address = (Ipv4Addr::LOCALHOST, manager.port()).into();
    let stream = socket.connect(address).await.unwrap();
    let tls = TlsConnector::from(config);
    let stream = tls.connect(SERVICE.try_into().unwrap(), stream).await.unwrap();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (client, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn post(path: &str, body: &Bytes) -> Request<Body> {
    request(path, Full::new(body.clone()).boxed())
}

fn request(path: &str, body: Body) -> Request<Body> {
    let request =
        Request::post(format!("https://{SERVICE}{path}")).header("content-type", "application/json");
    request.body(body).unwrap()
}

/// A body of so many MiB whose length is not announced.
fn endless(mebibytes: usize) -> Body {
    let piece = Bytes::from(vec![b' '; 1 << 20]);
    let pieces = (0..mebibytes).map(move |_| Ok(Frame::data(piece.clone())));
    BoxBody::new(StreamBody::new(stream::iter(pieces)))
}

/// A conversion of so many CloneSets of 6 MiB each.
fn conversion(count: usize) -> Bytes {
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "a"}]}}});
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": "default", "annotations": {"notes": "n".repeat(6 << 20)}}, "spec": spec});
    let request =
        json!({"uid": "u", "desiredAPIVersion": "apps.kruise.io/v1alpha1", "objects": vec![set; count]});
    let review =
        json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request});
    review.to_string().into()
}

/// A review of a pod with a list that takes a hundred times its bytes as a tree.
fn dense(bytes: usize) -> Bytes {
    let list = vec![r#"{"":0}"#; bytes / 7].join(",");
    let review = String::from_utf8(review().to_vec()).unwrap();
    let pod = format!(r#""spec":{{"nodeName":[{list}],"#);
    review.replacen(r#""spec":{"#, &pod, 1).into()
}

fn review() -> Bytes {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}});
    let request = json!({"uid": "u", "operation": "CREATE", "namespace": "default", "object": pod,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}});
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request});
    review.to_string().into()
}

/// Opens connections and sends the same request many times on each. Returns them with the answers, which keep them
/// open.
async fn never_read(
    manager: SocketAddr,
    config: &Arc<ClientConfig>,
    connections: usize,
    requests: usize,
    (path, body): (&'static str, Bytes),
) -> Vec<(Client, Vec<Response<Incoming>>)> {
    let mut sending = JoinSet::new();
    for _ in 0..connections {
        let (config, body) = (config.clone(), body.clone());
        sending.spawn(async move {
            let mut client = client([127, 0, 0, 1], manager, config, 0).await;
            let mut all = JoinSet::new();
            for _ in 0..requests {
                if client.ready().await.is_err() {
                    break;
                }
                all.spawn(client.send_request(post(path, &body)));
            }
            // A connection that is cut off for another one has no answers.
            let answers = all.join_all().await.into_iter().filter_map(Result::ok);
            (client, answers.collect())
        });
    }
    sending.join_all().await
}

/// Clients of the first address whose answers stay unread, until the manager holds as many of them as it ever does.
async fn greedy(manager: SocketAddr, config: &Arc<ClientConfig>) -> Vec<(Client, Vec<Response<Incoming>>)> {
    // One wave after the other: so many wait for each other no longer than the manager lets them.
    let mut held = Vec::new();
    for _ in 0..2 {
        held.extend(never_read(manager, config, 9, 1, ("/convert", conversion(2))).await);
    }
    let taken = |held: &[(Client, Vec<Response<Incoming>>)]| {
        let answers = held.iter().flat_map(|(_, answers)| answers);
        answers.filter(|answer| answer.status() == StatusCode::OK).count()
    };
    let conversions = taken(&held);
    let small = never_read(manager, config, 100, 20, ("/mutate-pod", review())).await;
    println!(
        "{conversions} conversions and {} reviews are not read",
        taken(&small)
    );
    assert!(conversions >= 5 && taken(&small) >= 1000);
    held.extend(small);
    held
}

/// What is too large is refused, and what just fits is answered: lists to convert, and bodies that take a hundred times
/// their bytes.
async fn sends_what_is_large(manager: SocketAddr, config: &Arc<ClientConfig>) {
    let connect = || client([127, 0, 0, 3], manager, config.clone(), 1 << 20);
    let announced = post("/convert", &Bytes::from(vec![b' '; 240 << 20]));
    for large in [
        announced,
        request("/convert", endless(240)),
        post("/mutate-pod", &dense(7_000_000)),
    ] {
        let answer = connect().await.send_request(large).await.unwrap();
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    let answer = connect()
        .await
        .send_request(post("/convert", &conversion(12)))
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let answer = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(answer.len() > 72 << 20, "{}", answer.len());
    let mut reviews = JoinSet::new();
    for _ in 0..8 {
        let mut client = connect().await;
        reviews.spawn(async move { client.send_request(post("/mutate-pod", &dense(700_000))).await });
    }
    for answer in reviews.join_all().await {
        assert_eq!(answer.unwrap().status(), StatusCode::OK);
    }
}

async fn answered(client: &mut Client, path: &'static str, body: &Bytes) -> Result<Bytes, hyper::Error> {
    let answer = client.send_request(post(path, body)).await?;
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    Ok(answer.into_body().collect().await?.to_bytes())
}

#[test]
fn large_secrets_large_requests_and_clients_that_never_read_leave_a_manager_under_its_memory_limit() {
    let cluster = Cluster::without(&[]);
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": ""}, "type": "Opaque",
        "data": {"notes": "bm90".repeat((1 << 20) / 4)}});
    for number in 0..500 {
        secret["metadata"]["name"] = json!(format!("large-{number}"));
        cluster.create("/api/v1/namespaces/default/secrets", &secret);
    }
    let mut manager = Manager::start(&cluster, &["--feature-gates=ImagePullJobGate=true"]);
    manager.wait_ready();
    println!("{} MiB after the start", manager.peak_memory() >> 20);
    let config = h2::config(&cluster.authority());
    let address = manager.webhooks;
    cluster.runtime.block_on(async {
        sends_what_is_large(address, &config).await;
        println!("{} MiB after large requests", manager.peak_memory() >> 20);
        let held = greedy(address, &config).await;
        // Another client is answered nevertheless. It connects again where its connection made room for another one.
        for (path, body) in [("/mutate-pod", review()), ("/convert", conversion(2))] {
            let mut attempts = 0;
            let answer = loop {
                let mut good = client([127, 0, 0, 2], address, config.clone(), 1 << 20).await;
                match answered(&mut good, path, &body).await {
                    Ok(answer) => break answer,
                    Err(error) => println!("{path}: {error}"),
                }
                attempts += 1;
                assert!(attempts < 5, "{path}");
            };
            let text = String::from_utf8_lossy(&answer[..answer.len().min(400)]).into_owned();
            assert!(path != "/convert" || answer.len() > 12 << 20, "{text}");
        }
        drop(held);
    });
    let peak = manager.peak_memory();
    println!("{} MiB at most", peak >> 20);
    assert!(peak <= LIMIT, "{} MiB", peak >> 20);
    manager.wait_ready();
}
