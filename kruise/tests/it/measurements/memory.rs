//! Memory of a manager whose clients never read.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
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

type Client = SendRequest<Full<Bytes>>;

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

fn post(path: &str, body: &Bytes) -> Request<Full<Bytes>> {
    let request =
        Request::post(format!("https://{SERVICE}{path}")).header("content-type", "application/json");
    request.body(Full::new(body.clone())).unwrap()
}

/// A conversion of two CloneSets of 6 MiB each.
fn conversion() -> Bytes {
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "a"}]}}});
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": "default", "annotations": {"notes": "n".repeat(6 << 20)}}, "spec": spec});
    let request = json!({"uid": "u", "desiredAPIVersion": "apps.kruise.io/v1alpha1", "objects": [set, set]});
    let review =
        json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request});
    review.to_string().into()
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

/// Opens connections and sends the same request many times on each. Returns them with the answers, which keep them open.
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

async fn answered(client: &mut Client, path: &'static str, body: &Bytes) -> Result<Bytes, hyper::Error> {
    let answer = client.send_request(post(path, body)).await?;
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    Ok(answer.into_body().collect().await?.to_bytes())
}

#[test]
#[ignore = "a measurement: cargo test -p kruise --test it -- --ignored measurements::"]
fn clients_that_never_read_hold_a_manager_under_its_memory_limit() {
    let cluster = Cluster::without(&[]);
    let mut manager = Manager::start(&cluster, &[]);
    manager.wait_ready();
    let config = h2::config(&cluster.authority());
    let address = manager.webhooks;
    cluster.runtime.block_on(async {
        // One wave after the other: so many wait for each other no longer than the manager lets them.
        let mut large = Vec::new();
        for _ in 0..6 {
            large.extend(never_read(address, &config, 9, 1, ("/convert", conversion())).await);
        }
        let of_small = never_read(address, &config, 100, 100, ("/mutate-pod", review())).await;
        let taken = |held: &[(Client, Vec<Response<Incoming>>)]| {
            let answers = held.iter().flat_map(|(_, answers)| answers);
            answers.filter(|answer| answer.status() == StatusCode::OK).count()
        };
        println!(
            "{} conversions and {} reviews are not read",
            taken(&large),
            taken(&of_small)
        );
        assert!(taken(&large) >= 8 && taken(&of_small) >= 1000);
        // Another client is answered nevertheless. It connects again where its connection made room for another one.
        for (path, body) in [("/mutate-pod", review()), ("/convert", conversion())] {
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
    });
    let peak = manager.peak_memory();
    println!("{} MiB at most", peak >> 20);
    assert!(peak <= LIMIT, "{} MiB", peak >> 20);
}
