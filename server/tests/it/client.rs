//! The other end: clients that behave, and the means to misbehave.

use std::{
    net::SocketAddr,
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kruise_server::{
    issue::issue,
    tls::{Pair, Tls},
    webhook::{WebhookServer, serve},
};
use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Issuing takes a while: one pair serves all tests.
pub(crate) static PAIR: LazyLock<Pair> = LazyLock::new(pair);

pub(crate) fn pair() -> Pair {
    let issued = issue("svc.ns.svc", jiff::Timestamp::now()).unwrap();
    Pair {
        ca_pem: issued.ca_cert.into_bytes(),
        cert_pem: issued.cert.into_bytes(),
        key_pem: issued.key.into_bytes(),
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Arc<Tls>,
    pub(crate) handlers: Arc<WebhookServer>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) async fn start(server: WebhookServer) -> Server {
    start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), server)
}

pub(crate) fn start_on(listener: TcpListener, server: WebhookServer) -> Server {
    start_with(listener, server, Tls::new(PAIR.clone()).unwrap())
}

pub(crate) fn start_with(listener: TcpListener, server: WebhookServer, tls: Tls) -> Server {
    let address = listener.local_addr().unwrap();
    let tls = Arc::new(tls);
    let server = Arc::new(server);
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(serve(listener, tls.clone(), server.clone(), stopped));
    Server {
        address,
        tls,
        handlers: server,
        stop,
        task,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// A client with a certificate of its own, and its key, in DER.
type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

fn config(pair: &Pair) -> ClientConfig {
    config_of(pair, None)
}

fn config_of(pair: &Pair, identity: Option<Identity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&pair.ca_pem).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match identity {
        Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => config.with_no_client_auth(),
    }
}

/// A connection of a client with this certificate.
pub(crate) async fn connect_as(
    identity: Identity,
    address: SocketAddr,
) -> std::io::Result<TlsStream<TcpStream>> {
    let config = config_of(&PAIR, Some(identity));
    let name = ServerName::try_from("svc.ns.svc").unwrap();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// The first message of a handshake.
pub(crate) fn hello(pair: &Pair) -> Vec<u8> {
    let name = ServerName::try_from("svc.ns.svc").unwrap();
    let mut client = ClientConnection::new(Arc::new(config(pair)), name).unwrap();
    let mut message = Vec::new();
    client.write_tls(&mut message).unwrap();
    message
}

/// A TLS connection that trusts `pair`'s CA only.
pub(crate) async fn connect(
    address: SocketAddr,
    pair: &Pair,
    version: Version,
) -> std::io::Result<TlsStream<TcpStream>> {
    secure(TcpStream::connect(address).await?, pair, version).await
}

/// TLS on a connection.
pub(crate) async fn secure(
    stream: TcpStream,
    pair: &Pair,
    version: Version,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut config = config(pair);
    if version == Version::Http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("svc.ns.svc").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// A TLS connection for HTTP/2 from another address of this machine.
#[cfg(target_os = "linux")]
pub(crate) async fn connect_from(from: [u8; 4], address: SocketAddr) -> TlsStream<TcpStream> {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let stream = socket.connect(address).await.unwrap();
    secure(stream, &PAIR, Version::Http2).await.unwrap()
}

/// An HTTP connection.
pub(crate) enum Client {
    Http1(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    Http2(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, version: Version) -> Self {
        Self::on(connect(address, &PAIR, version).await.unwrap(), version).await
    }

    pub(crate) async fn on(stream: TlsStream<TcpStream>, version: Version) -> Self {
        let io = TokioIo::new(stream);
        match version {
            Version::Http1 => {
                let (client, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                Self::Http1(client)
            }
            Version::Http2 => {
                let executor = TokioExecutor::new();
                let (client, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
                tokio::spawn(connection);
                Self::Http2(client)
            }
        }
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(client) => client.send_request(request).await,
            Self::Http2(client) => client.send_request(request).await,
        }
    }

    /// Posts JSON and reads the whole answer.
    pub(crate) async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> (StatusCode, String) {
        self.read(post(path, body)).await
    }

    pub(crate) async fn read(&mut self, request: Request<Full<Bytes>>) -> (StatusCode, String) {
        let exchange = async {
            let response = self.send(request).await.unwrap();
            let status = response.status();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(body.to_vec()).unwrap())
        };
        tokio::time::timeout(Duration::from_secs(20), exchange)
            .await
            .expect("an answer")
    }
}

pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post(format!("https://svc.ns.svc{path}"));
    let request = request
        .header("host", "svc.ns.svc")
        .header("content-type", "application/json");
    request.body(Full::new(body.into())).unwrap()
}
