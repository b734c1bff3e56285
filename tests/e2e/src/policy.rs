//! A validating webhook of somebody else, that fails to answer some reviews.
//!
//! It speaks as much HTTP/1.1 over TLS as an API server needs, on a port of the loopback interface. Every n-th
//! review is answered with 500, and the server then fails the request itself with 500; all others are allowed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// Longest body that is read.
const LONGEST: usize = 8 << 20;

/// A running webhook. Its threads end with the process.
#[derive(Debug)]
pub struct Policy {
    port: u16,
    certificate: String,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Every review whose number is divisible by this fails; none if it is zero.
    one_in: AtomicU64,
    reviews: AtomicU64,
    failed: AtomicU64,
}

impl Policy {
    /// Starts one that fails no review yet.
    pub fn start() -> Result<Self> {
        let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_single_cert(vec![key.cert.der().clone()], private)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let (config, served) = (Arc::new(config), shared.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, shared) = (config.clone(), served.clone());
                // A connection that breaks is its client's matter.
                std::thread::spawn(move || serve(stream, config, &shared));
            }
        });
        Ok(Self {
            port,
            certificate: key.cert.pem(),
            shared,
        })
    }

    /// From now on one in so many reviews fails; none for zero.
    pub fn fail_one_in(&self, reviews: u64) {
        self.shared.one_in.store(reviews, Ordering::SeqCst);
    }

    /// How many reviews failed.
    pub fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::SeqCst)
    }

    /// The configuration that sends it writes of pods in a namespace.
    pub fn configuration(&self, namespace: &str) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": format!("policy-{namespace}")},
            "webhooks": [{
                "name": "policy.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                    "operations": ["CREATE", "UPDATE"],
                }],
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{}/review", self.port),
                    "caBundle": STANDARD.encode(&self.certificate),
                },
            }],
        })
    }
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, shared: &Shared) -> Result<()> {
    let tls = ServerConnection::new(config)?;
    let mut stream = BufReader::new(StreamOwned::new(tls, stream));
    loop {
        let Some(length) = head(&mut stream)? else {
            return Ok(());
        };
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let review: Value = serde_json::from_slice(&body)?;
        let number = shared.reviews.fetch_add(1, Ordering::SeqCst) + 1;
        let one_in = shared.one_in.load(Ordering::SeqCst);
        let (code, answer) = if one_in > 0 && number.is_multiple_of(one_in) {
            shared.failed.fetch_add(1, Ordering::SeqCst);
            ("500 Internal Server Error", json!({}))
        } else {
            let response = json!({"uid": review.pointer("/request/uid"), "allowed": true});
            let review = json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
            });
            ("200 OK", review)
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {code}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let stream = stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(answer.as_bytes())?;
        stream.flush()?;
    }
}

/// Reads the head of a request: the length of its body, or none at the end of the connection.
fn head(stream: &mut impl BufRead) -> Result<Option<usize>> {
    let mut length = 0;
    let mut lines = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() && lines > 0 {
            return Ok(Some(length));
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().context("content-length")?;
        }
        lines += 1;
        if length > LONGEST || lines > 100 {
            bail!("too long a request");
        }
    }
}
