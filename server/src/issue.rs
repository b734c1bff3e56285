//! New certificates: a CA of our own and the serving certificate it signs.
//!
//! Private keys are written as PKCS#1, the form the Go program writes and reads, so that either program can continue
//! with the other's secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};
use x509_parser::der_parser::der::parse_der;

use crate::{Error, renewal::LIFETIME};

/// Common name and DNS name of the CA.
pub const CA_NAME: &str = "webhook-cert-ca";

/// A CA and a serving certificate with their keys, all PEM.
pub struct Issued {
    /// Certificate of the CA.
    pub ca_cert: String,
    /// Key of the CA, PKCS#1.
    pub ca_key: String,
    /// Serving certificate.
    pub cert: String,
    /// Serving key, PKCS#1.
    pub key: String,
}

impl Issued {
    /// The `data` of the Secret both programs share: six keys, values in base64.
    pub fn secret_data(&self) -> serde_json::Value {
        let value = |pem: &str| STANDARD.encode(pem);
        serde_json::json!({
            "ca-key.pem": value(&self.ca_key),
            "ca-cert.pem": value(&self.ca_cert),
            "key.pem": value(&self.key),
            "tls.key": value(&self.key),
            "cert.pem": value(&self.cert),
            "tls.crt": value(&self.cert),
        })
    }
}

/// Makes a CA and a serving certificate for `host` (DNS name or IP address) and `localhost`, valid from `now`.
pub fn issue(host: &str, now: Timestamp) -> Result<Issued, Error> {
    let ca_key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?;
    let mut ca = params(CA_NAME, vec![CA_NAME.to_owned()], now)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca_cert = ca.self_signed(&ca_key)?.pem();
    let ca_key_pem = pkcs1_pem(&ca_key)?;

    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?;
    let mut serving = params(host, vec!["localhost".to_owned(), host.to_owned()], now)?;
    serving.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let cert = serving.signed_by(&key, &Issuer::new(ca, ca_key))?.pem();
    Ok(Issued {
        ca_cert,
        ca_key: ca_key_pem,
        cert,
        key: pkcs1_pem(&key)?,
    })
}

fn params(name: &str, sans: Vec<String>, now: Timestamp) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(sans)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let since_epoch = std::time::Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_epoch;
    params.not_after = params.not_before + LIFETIME;
    Ok(params)
}

/// Unwraps the PKCS#1 key that a PKCS#8 key carries as its third field.
fn pkcs1_pem(key: &KeyPair) -> Result<String, Error> {
    let (_, outer) = parse_der(key.serialized_der()).map_err(|_| Error::IssuedKey)?;
    let inner = outer
        .as_sequence()
        .ok()
        .and_then(|fields| fields.get(2))
        .ok_or(Error::IssuedKey)?;
    let text = STANDARD.encode(inner.as_slice().map_err(|_| Error::IssuedKey)?);
    let mut pem = String::from("-----BEGIN RSA PRIVATE KEY-----\n");
    for (at, symbol) in text.chars().enumerate() {
        if at > 0 && at % 64 == 0 {
            pem.push('\n');
        }
        pem.push(symbol);
    }
    pem.push_str("\n-----END RSA PRIVATE KEY-----\n");
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::pem::PemObject as _;
    use rustls_pki_types::{CertificateDer, PrivateKeyDer};
    use x509_parser::parse_x509_certificate;

    #[test]
    fn the_secret_holds_each_file_under_its_names() {
        let text = |text: &str| text.to_owned();
        let issued = Issued {
            ca_cert: text("a"),
            ca_key: text("b"),
            cert: text("c"),
            key: text("d"),
        };
        let expected = serde_json::json!({
            "ca-cert.pem": "YQ==", "ca-key.pem": "Yg==", "cert.pem": "Yw==", "tls.crt": "Yw==",
            "key.pem": "ZA==", "tls.key": "ZA==",
        });
        assert_eq!(issued.secret_data(), expected);
    }

    #[test]
    fn the_serving_certificate_chains_to_the_ca_and_rustls_accepts_it_with_its_key() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let issued = issue("svc.ns.svc", now).unwrap();
        let ca = CertificateDer::from_pem_slice(issued.ca_cert.as_bytes()).unwrap();
        let cert = CertificateDer::from_pem_slice(issued.cert.as_bytes()).unwrap();
        let (_, ca_x509) = parse_x509_certificate(&ca).unwrap();
        let (_, x509) = parse_x509_certificate(&cert).unwrap();
        assert_eq!(x509.issuer(), ca_x509.subject());
        assert_eq!(x509.validity().not_before.timestamp(), now.as_second());
        assert_eq!(x509.validity().not_before, ca_x509.validity().not_before);
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
        assert!(matches!(key, PrivateKeyDer::Pkcs1(_)));
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = || {
            let builder = rustls::ServerConfig::builder_with_provider(provider.clone());
            builder
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
        };
        assert!(builder().with_single_cert(vec![cert.clone()], key).is_ok());
        let other = PrivateKeyDer::from_pem_slice(issued.ca_key.as_bytes()).unwrap();
        assert!(builder().with_single_cert(vec![cert.clone()], other).is_err());
        x509.verify_signature(Some(ca_x509.public_key())).unwrap();
    }
}
