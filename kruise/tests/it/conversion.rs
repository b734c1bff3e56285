//! A long list of CloneSets that is read in another version: what that costs the executable, from socket to socket.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::process::{Playground, Scratch};

/// Without optimisation fewer, so that a slow machine sends them within the time that a body has to arrive.
const SETS: usize = if cfg!(debug_assertions) { 4_000 } else { 10_000 };
const BYTES: usize = 4096;
/// Peak of the resident set, beyond what it was before.
const MOST_BODIES: f64 = 2.0;

/// A set of [`BYTES`] bytes, most of it environment variables as in life.
fn set(index: usize) -> String {
    let env: Vec<Value> = (0..50)
        .map(|number| json!({"name": format!("SETTING_{number}"), "value": "a value of some length"}))
        .collect();
    let container = json!({"name": "main", "image": "example.org/app:1", "env": env});
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": format!("web-{index}"), "namespace": "shop", "uid": format!("uid-{index}"),
                     "annotations": {"example.com/notes": ""}},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                 "updateStrategy": {"type": "RollingUpdate",
                                    "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "20%"}},
                 "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}},
    });
    let missing = BYTES - set.to_string().len();
    set["metadata"]["annotations"]["example.com/notes"] = "n".repeat(missing).into();
    set.to_string()
}

fn body() -> Bytes {
    let mut body = String::with_capacity(SETS * (BYTES + 1) + 1024);
    body.push_str(
        r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",
            "request":{"uid":"u","desiredAPIVersion":"apps.kruise.io/v1alpha1","objects":["#,
    );
    for index in 0..SETS {
        let separator = if index == 0 { "" } else { "," };
        write!(body, "{separator}{}", set(index)).unwrap();
    }
    body.push_str("]}}");
    body.into()
}

/// Where the playground's definitions say that conversions are made, and whom to trust there.
fn webhook(playground: &Playground) -> (SocketAddr, Vec<u8>) {
    let name = "clonesets.apps.kruise.io";
    let crd = playground.get(&format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    ));
    let client = &crd["spec"]["conversion"]["webhook"]["clientConfig"];
    let url = client["url"].as_str().unwrap();
    let address = url
        .strip_prefix("https://")
        .and_then(|url| url.strip_suffix("/convert"));
    let ca = STANDARD.decode(client["caBundle"].as_str().unwrap()).unwrap();
    (address.unwrap().parse().unwrap(), ca)
}

/// HTTP/2 over TLS, as API servers call.
async fn connect(address: SocketAddr, ca: &[u8]) -> SendRequest<Full<Bytes>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::IpAddress(address.ip().into());
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_takes_twice_its_size_at_most_from_socket_to_socket() {
    let scratch = Scratch::new("conversion");
    let playground = Playground::start(&scratch, &["--fast"]);
    let (address, ca) = webhook(&playground);
    let mut client = connect(address, &ca).await;
    let body = body();
    let length = body.len();
    let request = Request::post(format!("https://{address}/convert"))
        .header("content-type", "application/json")
        .body(Full::new(body))
        .unwrap();
    let before = playground.resident("VmRSS");
    playground.forget_peak();
    let response = client.send_request(request).await.unwrap();
    let status = response.status();
    let answer = response.into_body().collect().await.unwrap().to_bytes();
    let peak = playground.resident("VmHWM").saturating_sub(before) as f64 / length as f64;
    println!(
        "{SETS} sets, body {length} bytes, answer {:.3} bodies: peak {peak:.3} bodies (at most {MOST_BODIES})",
        answer.len() as f64 / length as f64
    );
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let converted = answer["response"]["convertedObjects"].as_array().unwrap();
    assert_eq!(converted.len(), SETS);
    assert_eq!(converted[SETS - 1]["apiVersion"], "apps.kruise.io/v1alpha1");
    assert!(peak <= MOST_BODIES, "{peak:.3} bodies");
}
