//! Calls to webhooks over TLS, with the failures in a server's words.
//!
//! Only the certificates of the webhook's `caBundle` are trusted. A service is called at an address of its endpoint
//! slices, if it has one.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Uri};
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::live::Live;
use crate::{WebhookCall, WebhookReply, wire};

/// Largest answer that is read, in bytes.
const BODY: usize = 8 << 20;
const HTTPS: u16 = 443;

/// Makes a call, for as long as it may take.
pub(super) async fn call(live: &Live, call: &WebhookCall) -> WebhookReply {
    let target = match Target::of(call) {
        Ok(target) => target,
        Err(why) => return WebhookReply::Failed(why),
    };
    let seconds = u64::try_from(call.timeout_seconds).unwrap_or_default();
    let answer = exchange(live, call, &target);
    let failed = match tokio::time::timeout(Duration::from_secs(seconds), answer).await {
        Ok(Ok(review)) => return WebhookReply::Review(review),
        Ok(Err(Trouble::Answer(why))) => why,
        Ok(Err(Trouble::Connection(why))) => format!("Post \"{}\": {why}", target.url),
        Err(_elapsed) => format!("Post \"{}\": context deadline exceeded", target.url),
    };
    WebhookReply::Failed(failed)
}

/// Why there is no review.
enum Trouble {
    /// The webhook was not reached, or broke off.
    Connection(String),
    /// It answered something else.
    Answer(String),
}

/// Where a webhook is.
struct Target {
    url: Uri,
    host: String,
    port: u16,
    /// Namespace and name of a service, whose endpoints are read.
    service: Option<(String, String)>,
}

impl Target {
    fn of(call: &WebhookCall) -> Result<Self, String> {
        let text = |pointer: &str| call.client.pointer(pointer).and_then(Value::as_str);
        let timeout = format!("timeout={}s", call.timeout_seconds);
        let (base, service) = if let Some(url) = text("/url") {
            (url.to_owned(), None)
        } else {
            let name = text("/service/name").unwrap_or_default();
            let namespace = text("/service/namespace").unwrap_or_default();
            let path = text("/service/path").unwrap_or("/");
            let port = call.client.pointer("/service/port").and_then(Value::as_u64);
            let port = port.unwrap_or(u64::from(HTTPS));
            let base = format!("https://{name}.{namespace}.svc:{port}{path}");
            (base, Some((namespace.to_owned(), name.to_owned())))
        };
        let separator = if base.contains('?') { '&' } else { '?' };
        let url: Uri = format!("{base}{separator}{timeout}")
            .parse()
            .map_err(|error| format!("parse {base:?}: {error}"))?;
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if url.scheme_str() != Some("https") || host.is_empty() {
            return Err(format!("'https' is the only allowed URL scheme: {base:?}"));
        }
        let port = url.port_u16().unwrap_or(HTTPS);
        Ok(Self {
            url,
            host,
            port,
            service,
        })
    }

    /// Host and port to connect to.
    fn address(&self, live: &Live) -> Result<(String, u16), String> {
        match &self.service {
            None => Ok((self.host.clone(), self.port)),
            Some((namespace, name)) => {
                live.with_world(|world| world.api().service_endpoint(namespace, name, self.port))
            }
        }
    }
}

async fn exchange(live: &Live, call: &WebhookCall, target: &Target) -> Result<Value, Trouble> {
    let stream = connect(live, call, target).await.map_err(Trouble::Connection)?;
    let broken = |error: hyper::Error| Trouble::Connection(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let path = target.url.path_and_query().map_or("/", |path| path.as_str());
    let authority = target.url.authority().map_or("", |authority| authority.as_str());
    let request = hyper::Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, */*")
        .body(Full::new(Bytes::from(wire::text(&call.review))))
        .map_err(|error| Trouble::Connection(error.to_string()))?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY).collect().await;
        let body = body.map_err(|error| Trouble::Connection(error.to_string()))?;
        review(status.as_u16(), &body.to_bytes())
    };
    tokio::pin!(answer);
    // the connection is closed after one exchange
    tokio::select! {
        answer = &mut answer => answer,
        _closed = connection => answer.await,
    }
}

fn review(status: u16, body: &[u8]) -> Result<Value, Trouble> {
    let refused = |why: String| Err(Trouble::Answer(why));
    match status {
        200..300 => serde_json::from_slice(body)
            .map_err(|error| Trouble::Answer(format!("the response is no review: {error}"))),
        404 => refused("the server could not find the requested resource".to_owned()),
        500.. => {
            let text = String::from_utf8_lossy(body);
            let text = text.trim();
            refused(format!(
                "an error on the server ({text:?}) has prevented the request from succeeding"
            ))
        }
        _ => refused("the server rejected our request for an unknown reason".to_owned()),
    }
}

async fn connect(live: &Live, call: &WebhookCall, target: &Target) -> Result<TlsStream<TcpStream>, String> {
    let config = trust(&call.client)?;
    let (host, port) = target.address(live)?;
    let name = ServerName::try_from(target.host.clone()).map_err(|error| error.to_string())?;
    let stream = TcpStream::connect((host.as_str(), port))
        .await
        .map_err(|error| dial(&host, port, &error))?;
    TlsConnector::from(config)
        .connect(name, stream)
        .await
        .map_err(|error| handshake(&error))
}

fn dial(host: &str, port: u16, error: &std::io::Error) -> String {
    let why = match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {host}:{port}: {why}")
}

fn handshake(error: &std::io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        // the second: by another key of the same name
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => "tls: failed to verify certificate: x509: certificate signed by unknown authority".to_owned(),
        Some(rustls::Error::InvalidCertificate(why)) => {
            format!("tls: failed to verify certificate: x509: {why}")
        }
        _ => error.to_string(),
    }
}

/// A client that trusts the certificates of a `caBundle` and no others.
fn trust(client: &Value) -> Result<Arc<ClientConfig>, String> {
    let bundle = client.get("caBundle").and_then(Value::as_str).unwrap_or_default();
    let bundle = STANDARD.decode(bundle).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bundle) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|one| roots.add(one).map_err(|error| error.to_string()));
        added.map_err(|why| format!("unable to load root certificates: {why}"))?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
