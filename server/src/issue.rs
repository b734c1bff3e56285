//! New certificates: a CA of our own and the serving certificate it signs.
//!
//! Private keys are written as PKCS#1, the form that OpenKruise writes and reads, so that each can continue with
//! the Secret of the other.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use x509_parser::{der_parser::der::parse_der, parse_x509_certificate};

use crate::{Error, renewal::LIFETIME, tls::Pair};

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

    /// The part that serving needs.
    pub fn pair(&self) -> Pair {
        let bytes = |pem: &str| pem.as_bytes().to_vec();
        Pair {
            ca_pem: bytes(&self.ca_cert),
            cert_pem: bytes(&self.cert),
            key_pem: bytes(&self.key),
        }
    }
}

/// A CA that can sign.
pub struct Authority {
    cert: String,
    key: String,
    since: Timestamp,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Creates a CA that is valid from `now` for [`LIFETIME`].
    pub fn new(now: Timestamp) -> Result<Self, Error> {
        let signer = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?;
        let mut ca = params(CA_NAME, vec![CA_NAME.to_owned()], now, now)?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self {
            cert: ca.self_signed(&signer)?.pem(),
            key: pkcs1_pem(&signer)?,
            since: now,
            issuer: Issuer::new(ca, signer),
        })
    }

    /// Reuses a stored CA if it is self-signed, its key matches, and it is valid for at least `least` from `now` on.
    ///
    /// `cert` may be a bundle; its first certificate is the CA.
    pub fn reuse(cert: &str, key: &str, now: Timestamp, least: Duration) -> Option<Self> {
        let der = CertificateDer::from_pem_slice(cert.as_bytes()).ok()?;
        let (_, x509) = parse_x509_certificate(&der).ok()?;
        let until = Timestamp::from_second(x509.validity().not_after.timestamp()).ok()?;
        let since = Timestamp::from_second(x509.validity().not_before.timestamp()).ok()?;
        let lasts = since <= now && until > now.checked_add(least).ok()?;
        if !lasts || !x509.is_ca() || x509.verify_signature(None).is_err() {
            return None;
        }
        let signer = PrivateKeyDer::from_pem_slice(key.as_bytes()).ok()?;
        let signer = KeyPair::try_from(&signer).ok()?;
        if signer.subject_public_key_info() != x509.public_key().raw {
            return None;
        }
        Some(Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            since,
            issuer: Issuer::from_ca_cert_der(&der, signer).ok()?,
        })
    }

    /// Adds an older CA to the bundle that clients trust.
    pub fn trust_also(&mut self, older: &str) {
        self.cert.push_str(older);
    }

    /// Signs a new serving certificate for `host` (DNS name or IP address) and `localhost`.
    pub fn issue(self, host: &str, now: Timestamp) -> Result<Issued, Error> {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?;
        let sans = vec!["localhost".to_owned(), host.to_owned()];
        let mut serving = params(host, sans, self.since, now)?;
        serving.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok(Issued {
            cert: serving.signed_by(&key, &self.issuer)?.pem(),
            key: pkcs1_pem(&key)?,
            ca_cert: self.cert,
            ca_key: self.key,
        })
    }
}

/// Creates a CA and a serving certificate for `host` (DNS name or IP address) and `localhost`, valid from `now`.
pub fn issue(host: &str, now: Timestamp) -> Result<Issued, Error> {
    Authority::new(now)?.issue(host, now)
}

/// A certificate valid from `since` until [`LIFETIME`] after `now`.
fn params(
    name: &str,
    sans: Vec<String>,
    since: Timestamp,
    now: Timestamp,
) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(sans)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let date = |at: Timestamp| {
        let seconds = u64::try_from(at.as_second()).unwrap_or_default();
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.not_before = date(since);
    params.not_after = date(now) + LIFETIME;
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
