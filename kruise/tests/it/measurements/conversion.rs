//! Memory for the conversion of a long list of CloneSets, from socket to socket.

use std::fmt::Write as _;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};

use crate::h2;
use crate::process::{Playground, Scratch};

/// Fewer without optimisation, so that a slow machine sends the body within the server's time limit. Still so many
/// that the overhead of a request is negligible.
const SETS: usize = if cfg!(debug_assertions) { 3_000 } else { 10_000 };
const BYTES: usize = 4096;
/// Peak of the resident set, beyond what it was before.
const MOST_BODIES: f64 = 2.0;

/// A CloneSet of [`BYTES`] bytes; most are environment variables, as in practice.
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

/// Address and certificate authority of the conversion webhook in the playground's definitions.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: cargo test -p kruise --test it -- --ignored measurements::"]
async fn a_long_list_takes_twice_its_size_at_most_from_socket_to_socket() {
    let scratch = Scratch::new("conversion");
    let playground = Playground::start(&scratch, &["--fast"]);
    let (address, ca) = webhook(&playground);
    let name = ServerName::IpAddress(address.ip().into());
    let stream = h2::connect(address, name, h2::config(&ca)).await.unwrap();
    let mut client = h2::client(stream).await.unwrap();
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
