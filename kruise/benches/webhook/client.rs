//! The webhook's server, and connections to it.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kruise_server::{
    issue::issue,
    tls::{Pair, Tls},
    webhook::{WebhookServer, serve},
};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::process::{PATH, Process};

const NAME: &str = "svc.ns.svc";

/// A server of a process's webhooks, until it is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Of clients that speak the second version.
    config: Arc<ClientConfig>,
    _stop: watch::Sender<bool>,
}

impl Server {
    /// Opens the doors.
    pub async fn start(process: &Process) -> Self {
        let pair = issue(NAME, jiff::Timestamp::now()).unwrap().pair();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = WebhookServer {
            routes: process.routes.clone(),
            ..WebhookServer::default()
        };
        let (stop, stopped) = watch::channel(false);
        let tls = Arc::new(Tls::new(pair.clone()).unwrap());
        tokio::spawn(serve(listener, tls, Arc::new(server), stopped));
        Self {
            address,
            config: Arc::new(config(&pair)),
            _stop: stop,
        }
    }

    /// Whom misbehaving tasks ask.
    pub fn target(&self) -> Target {
        Target {
            address: self.address,
            config: self.config.clone(),
        }
    }
}

fn config(pair: &Pair) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&pair.ca_pem).unwrap())
        .unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// Where a server is, and whom to trust.
#[derive(Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Target {
    /// A fresh connection.
    pub async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(NAME).unwrap();
        TlsConnector::from(self.config.clone())
            .connect(name, stream)
            .await
    }

    /// A client on a connection of its own, as an API server's.
    pub async fn client(&self) -> Option<SendRequest<Full<Bytes>>> {
        let io = TokioIo::new(self.connect().await.ok()?);
        let (client, connection) = handshake(TokioExecutor::new(), io).await.ok()?;
        tokio::spawn(connection);
        Some(client)
    }
}

/// A request to review a pod.
pub fn request(body: Bytes) -> http::Request<Full<Bytes>> {
    http::Request::post(format!("https://{NAME}{PATH}?timeout=10s"))
        .header("content-type", "application/json")
        .body(Full::new(body))
        .unwrap()
}
