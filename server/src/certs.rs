//! Decides if a stored certificate is valid, and what to store instead.
//!
//! A certificate is verified as TLS clients verify it, for the moment at which renewal becomes due: so it is still
//! valid when the next replica checks it. A new CA is published together with the one it replaces, so that replicas
//! which still serve the old certificate stay reachable until they have read the new one. If the store was deleted
//! or emptied, the replaced CA is the one of the certificate that is served.

use std::{sync::Arc, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::{
    CertificateError, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};
use x509_parser::parse_x509_certificate;

use crate::{
    Error,
    issue::{Authority, Issued},
    tls::{Pair, certificates, config, provider},
};

const YEAR: Duration = Duration::from_hours(365 * 24);

/// Why a stored certificate has to be replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// A part is not stored.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A part is not PEM of its kind.
    #[error("{0}")]
    Unusable(String),
    /// The key belongs to another certificate.
    #[error("key and certificate do not belong together")]
    KeyMismatch,
    /// The CA did not sign the certificate, or not for servers.
    #[error("certificate is not trusted: {0}")]
    Untrusted(String),
    /// The certificate is for another host.
    #[error("certificate is not valid for {0}")]
    Name(String),
    /// Certificate or CA ends before the renewal is due.
    #[error("{0} expires within the lead time")]
    Expiring(&'static str),
}

/// Content of a Secret or a directory, complete or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Certificate of the CA, perhaps with older ones behind it.
    pub ca: Option<Vec<u8>>,
    /// Key of the CA.
    pub ca_key: Option<Vec<u8>>,
    /// Serving certificate.
    pub cert: Option<Vec<u8>>,
    /// Serving key.
    pub key: Option<Vec<u8>>,
}

/// What to write to the Secret, and the pair to serve afterwards.
#[derive(Debug, Clone, PartialEq)]
pub enum SecretDecision {
    /// It is valid: write nothing.
    Use(Pair),
    /// Create this one; name and namespace are the caller's to fill in.
    Create(Value, Pair),
    /// Replace it by this one, which carries the `resourceVersion` that was read.
    Update(Value, Pair),
}

impl Stored {
    /// Reads a Secret's `data`. The serving files may have our names or those of OpenKruise.
    pub fn from_secret(secret: &Value) -> Self {
        let field = |name: &str| field(secret, name);
        Self {
            ca: field("ca-cert.pem"),
            ca_key: field("ca-key.pem"),
            cert: field("tls.crt").or_else(|| field("cert.pem")),
            key: field("tls.key").or_else(|| field("key.pem")),
        }
    }

    /// Reads the Secret of an external issuer, whose names are the usual ones of cert-manager.
    pub fn from_external(secret: &Value) -> Self {
        let field = |name: &str| field(secret, name);
        Self {
            ca: field("ca.crt"),
            ca_key: None,
            cert: field("tls.crt"),
            key: field("tls.key"),
        }
    }

    /// The pair, if it is valid for `host` at least until `now + lead`.
    ///
    /// # Errors
    /// Fails with the first [`Defect`] found.
    pub fn check(&self, host: &str, now: Timestamp, lead: Duration) -> Result<Pair, Defect> {
        let field = |field: &Option<Vec<u8>>, name| field.clone().ok_or(Defect::Missing(name));
        let pair = Pair {
            ca_pem: field(&self.ca, "CA certificate")?,
            cert_pem: field(&self.cert, "certificate")?,
            key_pem: field(&self.key, "key")?,
        };
        config(&pair, None).map_err(|error| match error {
            Error::Tls(rustls::Error::InconsistentKeys(_)) => Defect::KeyMismatch,
            error => Defect::Unusable(error.to_string()),
        })?;
        let due = seconds(now).saturating_add(lead.as_secs());
        verify(&pair, host, due)?;
        Ok(pair)
    }

    /// New certificates in place of the stored ones, signed by the stored CA if that one is valid.
    ///
    /// `served_ca` is the CA of the certificate being served, PEM; a new CA does not end the trust in it.
    pub fn renew(
        &self,
        served_ca: Option<&[u8]>,
        host: &str,
        now: Timestamp,
        lead: Duration,
    ) -> Result<Issued, Error> {
        let text = |field: &Option<Vec<u8>>| String::from_utf8(field.clone()?).ok();
        let ca = text(&self.ca);
        // A CA that ends within the lead time would make the next check fail again.
        let least = lead.max(YEAR);
        let stored = ca.as_deref().zip(text(&self.ca_key));
        let stored = stored.and_then(|(ca, key)| Authority::reuse(ca, &key, now, least));
        if let Some(stored) = stored {
            return stored.issue(host, now);
        }
        let mut authority = Authority::new(now)?;
        let trusted = |bundle: Option<&str>| bundle.and_then(|bundle| still_valid(bundle, now));
        let stored = trusted(ca.as_deref());
        let served = trusted(served_ca.and_then(|ca| str::from_utf8(ca).ok()));
        if let Some(older) = &stored {
            authority.trust_also(older);
        }
        if let Some(older) = served.filter(|served| Some(served) != stored.as_ref()) {
            authority.trust_also(&older);
        }
        authority.issue(host, now)
    }
}

/// Decides over the Secret both programs share.
///
/// `host` is the name or address the API server uses; the certificate is replaced `lead` before its end. For
/// `served_ca` see [`Stored::renew`].
pub fn reconcile_secret(
    current: Option<&Value>,
    served_ca: Option<&[u8]>,
    host: &str,
    now: Timestamp,
    lead: Duration,
) -> Result<SecretDecision, Error> {
    let stored = current.map(Stored::from_secret).unwrap_or_default();
    match stored.check(host, now, lead) {
        Ok(pair) => return Ok(SecretDecision::Use(pair)),
        Err(defect) => tracing::info!(%defect, "making a new serving certificate"),
    }
    let issued = stored.renew(served_ca, host, now, lead)?;
    let pair = issued.pair();
    let Some(current) = current else {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": issued.secret_data()});
        return Ok(SecretDecision::Create(secret, pair));
    };
    let mut secret = current.clone();
    if let (Some(secret), Value::Object(new)) = (secret.as_object_mut(), issued.secret_data()) {
        match secret.get_mut("data") {
            Some(Value::Object(data)) => data.extend(new),
            _ => drop(secret.insert("data".into(), Value::Object(new))),
        }
    }
    Ok(SecretDecision::Update(secret, pair))
}

/// A key of a Secret; an empty one counts as missing.
fn field(secret: &Value, name: &str) -> Option<Vec<u8>> {
    let text = secret.get("data")?.get(name)?.as_str()?;
    STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty())
}

fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_second()).unwrap_or_default()
}

/// Verifies both names under which this server is called.
fn verify(pair: &Pair, host: &str, due: u64) -> Result<(), Defect> {
    let unusable = |error: String| Defect::Unusable(error);
    let read = |what, pem| certificates(what, pem).map_err(|error| unusable(error.to_string()));
    let ca = read("CA certificate", &pair.ca_pem)?.into_iter().next();
    let chain = read("certificate", &pair.cert_pem)?;
    let (Some(ca), Some((leaf, intermediates))) = (ca, chain.split_first()) else {
        return Err(Defect::Missing("certificate"));
    };
    // Clients take the CA as given, whatever its dates; the CA's own end is ours to watch.
    if ends(&ca).is_none_or(|end| end <= due) {
        return Err(Defect::Expiring("CA certificate"));
    }
    let mut roots = RootCertStore::empty();
    roots.add(ca).map_err(|error| unusable(error.to_string()))?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let verifier = verifier.map_err(|error| unusable(error.to_string()))?;
    let at = UnixTime::since_unix_epoch(Duration::from_secs(due));
    for name in [host, "localhost"] {
        let server = ServerName::try_from(name).map_err(|_| Defect::Name(name.to_owned()))?;
        let verdict = verifier.verify_server_cert(leaf, intermediates, &server, &[], at);
        verdict.map_err(|error| defect(&error, name))?;
    }
    Ok(())
}

fn defect(error: &rustls::Error, name: &str) -> Defect {
    use CertificateError::{Expired, ExpiredContext, NotValidForName, NotValidForNameContext};
    match error {
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            Defect::Name(name.to_owned())
        }
        rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. }) => Defect::Expiring("certificate"),
        error => Defect::Untrusted(error.to_string()),
    }
}

/// The end of a certificate in seconds since 1970.
fn ends(der: &CertificateDer<'_>) -> Option<u64> {
    let (_, x509) = parse_x509_certificate(der).ok()?;
    u64::try_from(x509.validity().not_after.timestamp()).ok()
}

/// The first certificate of a bundle as PEM, if it has not ended.
fn still_valid(bundle: &str, now: Timestamp) -> Option<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let first = certificates("CA certificate", bundle.as_bytes()).ok()?;
    let end = ends(first.first()?)?;
    let begin = bundle.find("-----BEGIN CERTIFICATE-----")?;
    let (pem, _) = bundle.get(begin..)?.split_once(END)?;
    (end > seconds(now)).then(|| format!("{pem}{END}\n"))
}

#[cfg(test)]
mod tests;
