//! The serving certificate, exchangeable while connections live.
//!
//! New handshakes use the pair that was set last; existing connections keep the pair they began with. Before the first
//! pair every handshake is refused.

use std::{io, sync::Arc};

use arc_swap::ArcSwapOption;
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    server::{Acceptor, WebPkiClientVerifier, danger::ClientCertVerifier},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio::{net::TcpStream, sync::Semaphore};
use tokio_rustls::{LazyConfigAcceptor, server::TlsStream};

use crate::Error;

/// A serving certificate with its key and the certificates clients shall trust, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// What clients shall trust: the CA that signed `cert_pem` first, then older ones still in circulation.
    pub ca_pem: Vec<u8>,
    /// The serving certificate, followed by intermediate ones if there are any.
    pub cert_pem: Vec<u8>,
    /// Its key, PKCS#1, PKCS#8 or SEC1.
    pub key_pem: Vec<u8>,
}

#[derive(Debug)]
struct Current {
    pair: Pair,
    config: Arc<ServerConfig>,
}

/// The pair in use.
#[derive(Debug, Default)]
pub struct Tls {
    current: ArcSwapOption<Current>,
    /// Accepts the certificates of clients; `None` if nobody is asked for one.
    clients: Option<Arc<dyn ClientCertVerifier>>,
    reads: Counter,
    failures: Counter,
}

impl Tls {
    /// Starts with `pair`. [`Tls::default`] starts without one.
    pub fn new(pair: Pair) -> Result<Self, Error> {
        let tls = Self::default();
        tls.swap(pair)?;
        Ok(tls)
    }

    /// Asks clients for certificates that one of these certificates, PEM, has signed. A client without one is
    /// served; whether a client has one says [`Tls::asks_clients`] with the connection.
    ///
    /// # Errors
    /// Fails if the text has no certificate, or one that is no authority.
    pub fn asking_clients(ca_pem: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for ca in certificates("client CA", ca_pem)? {
            roots.add(ca)?;
        }
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .allow_unauthenticated()
            .build()
            .map_err(Error::ClientCa)?;
        Ok(Self {
            clients: Some(clients),
            ..Self::default()
        })
    }

    /// Are clients asked for certificates?
    pub(crate) fn asks_clients(&self) -> bool {
        self.clients.is_some()
    }

    /// Serves `pair` from the next handshake on. A pair that TLS does not accept changes nothing.
    pub fn swap(&self, pair: Pair) -> Result<(), Error> {
        self.reads.inc();
        let config = config(&pair, self.clients.clone()).inspect_err(|_| {
            self.failures.inc();
        })?;
        self.current.store(Some(Arc::new(Current {
            pair,
            config: Arc::new(config),
        })));
        Ok(())
    }

    /// The pair in use, if any.
    pub fn pair(&self) -> Option<Pair> {
        self.current.load().as_ref().map(|current| current.pair.clone())
    }

    /// Adds the counters under the names of Go's certificate watcher.
    pub fn register(&self, registry: &mut Registry) {
        let name = "certwatcher_read_certificate";
        registry.register(name, "Certificates read", self.reads.clone());
        let name = "certwatcher_read_certificate_errors";
        registry.register(name, "Certificates that could not be used", self.failures.clone());
    }

    /// Answers one handshake. The caller bounds its duration.
    ///
    /// A permit is needed only to sign, after a complete ClientHello: a peer that stalls holds none, and many
    /// handshakes at once cannot occupy more threads than there are permits.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        permits: &Semaphore,
    ) -> io::Result<TlsStream<TcpStream>> {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let Some(config) = self.current.load().as_ref().map(|current| current.config.clone()) else {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "no certificate yet"));
        };
        let permit = permits.acquire().await.map_err(io::Error::other)?;
        let handshake = start.into_stream(config);
        drop(permit);
        handshake.await
    }
}

/// The provider of all TLS of this crate.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Reads the certificates of a PEM text.
pub(crate) fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(Error::Pem {
            what,
            source: rustls_pki_types::pem::Error::NoItemsFound,
        }),
        found => found.map_err(|source| Error::Pem { what, source }),
    }
}

/// TLS configuration of a pair. Fails if the key does not belong to the certificate.
pub(crate) fn config(
    pair: &Pair,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, Error> {
    let chain = certificates("certificate", &pair.cert_pem)?;
    let key = PrivateKeyDer::from_pem_slice(&pair.key_pem).map_err(|source| Error::Pem {
        what: "private key",
        source,
    })?;
    let clients = clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth);
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_pkcs8_are_read_and_every_reading_is_counted() {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        let pair = |key: &str| Pair {
            ca_pem: Vec::new(),
            cert_pem: cert.pem().into_bytes(),
            key_pem: key.as_bytes().to_vec(),
        };
        let key = signing_key.serialize_pem();
        assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"));
        let tls = Tls::new(pair(&key)).unwrap();
        let text = tls.swap(pair("text"));
        let what = "private key";
        assert!(matches!(text, Err(Error::Pem { what: found, .. }) if found == what));
        assert_eq!(
            tls.pair(),
            Some(pair(&key)),
            "a pair that cannot be served changes nothing"
        );

        let mut registry = Registry::default();
        tls.register(&mut registry);
        let mut metrics = String::new();
        prometheus_client::encoding::text::encode(&mut metrics, &registry).unwrap();
        assert!(
            metrics.contains("\ncertwatcher_read_certificate_total 2\n"),
            "{metrics}"
        );
        assert!(
            metrics.contains("\ncertwatcher_read_certificate_errors_total 1\n"),
            "{metrics}"
        );
    }
}
