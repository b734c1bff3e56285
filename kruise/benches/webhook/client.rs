//! The webhook's server, and connections to it.

#[path = "../../tests/it/h2.rs"]
mod h2;

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use kruise_server::{
    issue::issue,
    tls::Tls,
    webhook::{WebhookServer, serve},
};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::client::TlsStream;

use crate::process::{PATH, Process};

const NAME: &str = "svc.ns.svc";

/// A server of a process's webhooks, until it is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// TLS configuration of HTTP/2 clients.
    config: Arc<ClientConfig>,
    _stop: watch::Sender<bool>,
}

impl Server {
    /// Starts the server.
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
            config: h2::config(&pair.ca_pem),
            _stop: stop,
        }
    }

    /// The address, for clients.
    pub fn target(&self) -> Target {
        Target {
            address: self.address,
            config: self.config.clone(),
        }
    }
}

/// A server's address and certificate authority.
#[derive(Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Target {
    /// A fresh connection.
    pub async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(NAME).unwrap();
        h2::connect(self.address, name, self.config.clone()).await
    }

    /// A client on a connection of its own, as an API server's.
    pub async fn client(&self) -> Option<SendRequest<Full<Bytes>>> {
        h2::client(self.connect().await.ok()?).await.ok()
    }
}

/// A request to review a pod.
pub fn request(body: Bytes) -> http::Request<Full<Bytes>> {
    http::Request::post(format!("https://{NAME}{PATH}?timeout=10s"))
        .header("content-type", "application/json")
        .body(Full::new(body))
        .unwrap()
}
