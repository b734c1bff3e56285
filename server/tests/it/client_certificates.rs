//! Callers that have to show a certificate.

use http::{Request, StatusCode};
use http_body_util::Full;
use kruise_server::{listen::Limits, tls::Tls};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;

use crate::client::{Client, PAIR, Version, connect_as, start_with};
use crate::webhook::{review, server};

/// An authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate for a client, and its key.
    fn client(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["api-server".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (
            certificate.der().clone(),
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
    }
}

#[tokio::test]
async fn only_callers_with_a_certificate_of_the_authority_are_answered() {
    let authority = Authority::new();
    let tls = Tls::asking_clients(authority.pem.as_bytes()).unwrap();
    tls.swap(PAIR.clone()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = start_with(listener, server(Limits::default()), tls);

    let mut stranger = Client::connect(server.address, Version::Http1).await;
    let (status, text) = stranger.post("/deny", review("u")).await;
    assert_eq!(
        (status, &*text),
        (StatusCode::UNAUTHORIZED, "a client certificate is needed")
    );
    let health = Request::get("https://svc.ns.svc/healthz").header("host", "svc.ns.svc");
    let (status, _) = stranger.read(health.body(Full::default()).unwrap()).await;
    assert_eq!(status, StatusCode::OK, "the manager asks itself");

    let stream = connect_as(authority.client(), server.address).await.unwrap();
    let mut known = Client::on(stream, Version::Http1).await;
    let (status, _) = known.post("/deny", review("u")).await;
    assert_eq!(status, StatusCode::OK);

    let other = connect_as(Authority::new().client(), server.address).await;
    // In TLS 1.3 a client learns of it with the first answer.
    if let Ok(stream) = other {
        let mut other = Client::on(stream, Version::Http1).await;
        assert!(
            other
                .send(crate::client::post("/deny", review("u")))
                .await
                .is_err()
        );
    }
}

#[test]
fn what_is_no_authority_is_an_error() {
    for text in ["", "garbage"] {
        assert!(Tls::asking_clients(text.as_bytes()).is_err(), "{text}");
    }
}
