//! Named checks behind `/healthz` and `/readyz`, with the paths and texts of Kubernetes' own components.
//!
//! `?verbose` lists the checks, `?exclude=<name>` leaves one out, and `<path>/<name>` runs one check only.

use std::{fmt::Write as _, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::{net::TcpStream, sync::watch, time::timeout};
use tokio_rustls::TlsConnector;

use crate::{
    listen::{Answer, text},
    tls::{Tls, certificates, provider},
};

/// Result of a check; the error says why it fails.
pub type Verdict = Result<(), String>;

type Probe = dyn Fn() -> Pin<Box<dyn Future<Output = Verdict> + Send>> + Send + Sync;

/// A named check.
#[derive(Clone)]
pub struct Check {
    name: &'static str,
    probe: Arc<Probe>,
}

impl Check {
    /// Names a check.
    pub fn new<F>(name: &'static str, probe: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Verdict> + Send + 'static,
    {
        let probe: Arc<Probe> = Arc::new(move || Box::pin(probe()));
        Self { name, probe }
    }

    /// `ping`: the process answers.
    pub fn ping() -> Self {
        Self::new("ping", || async { Ok(()) })
    }

    /// `shutdown`: fails once `stopping` is true or its sender is dropped, so that clients move to another process
    /// before this one closes its listeners.
    pub fn shutdown(stopping: watch::Receiver<bool>) -> Self {
        Self::new("shutdown", move || {
            let is_stopping = *stopping.borrow() || stopping.has_changed().is_err();
            std::future::ready(if is_stopping {
                Err("process is shutting down".to_owned())
            } else {
                Ok(())
            })
        })
    }

    /// `webhook-ready`: the webhook server on `port` of this host answers over TLS with a certificate that the
    /// published CA signed. Fails until a certificate is served.
    pub fn webhook_ready(tls: Arc<Tls>, port: u16) -> Self {
        Self::new("webhook-ready", move || {
            let tls = tls.clone();
            async move {
                let Some(pair) = tls.pair() else {
                    return Err("no serving certificate yet".to_owned());
                };
                let answer = timeout(Duration::from_secs(2), get(&pair.ca_pem, port)).await;
                let answer = answer.map_err(|_| "no answer within 2s".to_owned())?;
                match answer.map_err(|error| error.to_string())? {
                    StatusCode::OK => Ok(()),
                    status => Err(format!("webhook server answered {status}")),
                }
            }
        })
    }
}

/// Requests `/healthz` of the webhook server on this host.
async fn get(ca_pem: &[u8], port: u16) -> Result<StatusCode, Box<dyn std::error::Error + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    for ca in certificates("CA certificate", ca_pem)? {
        roots.add(ca)?;
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("localhost", port)).await?;
    let name = ServerName::try_from("localhost")?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (mut client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/healthz").header("host", "localhost");
    let request = request.body(Empty::<Bytes>::new())?;
    tokio::select! {
        // The connection ends with this function, however it returns.
        outcome = connection => Err(outcome.err().map_or("connection closed".into(), Into::into)),
        response = client.send_request(request) => Ok(response?.status()),
    }
}

/// Answers `path`, which is the endpoint's own or below it. `None`: there is no such check.
pub(crate) async fn respond(
    endpoint: &str,
    checks: &[Check],
    path: &str,
    query: Option<&str>,
) -> Option<Answer> {
    let below = path.strip_prefix(endpoint)?;
    if let Some(name) = below.strip_prefix('/').filter(|name| !name.is_empty()) {
        let check = checks.iter().find(|check| check.name == name)?;
        return Some(match (check.probe)().await {
            Ok(()) => text(StatusCode::OK, "ok"),
            Err(reason) => {
                let message = format!("internal server error: {reason}\n");
                text(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        });
    }
    if !matches!(below, "" | "/") {
        return None;
    }
    Some(
        all(
            endpoint.trim_start_matches('/'),
            checks,
            query.unwrap_or_default(),
        )
        .await,
    )
}

async fn all(endpoint: &str, checks: &[Check], query: &str) -> Answer {
    let pairs = || {
        query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    };
    let verbose = pairs().any(|(name, _)| name == "verbose");
    let mut excluded: Vec<&str> = pairs()
        .filter_map(|(name, value)| (name == "exclude" && !value.is_empty()).then_some(value))
        .collect();
    let mut list = String::new();
    let mut healthy = true;
    for check in checks {
        // Writing to a String cannot fail.
        let _ = if excluded.contains(&check.name) {
            excluded.retain(|name| *name != check.name);
            writeln!(list, "[+]{} excluded: ok", check.name)
        } else if let Err(reason) = (check.probe)().await {
            tracing::warn!(check = check.name, reason, "health check failed");
            healthy = false;
            writeln!(list, "[-]{} failed: reason withheld", check.name)
        } else {
            writeln!(list, "[+]{} ok", check.name)
        };
    }
    if !excluded.is_empty() {
        let names: Vec<_> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(", ");
        let _ = writeln!(
            list,
            "warn: some health checks cannot be excluded: no matches for {names}"
        );
    }
    match (healthy, verbose) {
        (true, false) => text(StatusCode::OK, "ok"),
        (true, true) => text(StatusCode::OK, format!("{list}{endpoint} check passed\n")),
        (false, _) => {
            let message = format!("{list}{endpoint} check failed\n");
            text(StatusCode::INTERNAL_SERVER_ERROR, message)
        }
    }
}
