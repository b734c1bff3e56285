//! Errors of this crate. Each says who has to act.

use std::path::PathBuf;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The annotation `template` is not a JSON array of webhooks; an administrator has to repair or empty it.
    #[error("annotation `template` is not a JSON array of webhooks: {0}")]
    Template(#[source] serde_json::Error),
    /// A webhook has neither a service nor a URL; the installer has to add one.
    #[error("webhook {0} has no client configuration")]
    NoClientConfig(String),
    /// A name or key was not accepted when a certificate was made; usually the host name is no DNS name.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The generated key is not in the expected form.
    #[error("private key is not RSA in PKCS#8")]
    IssuedKey,
    /// A body is not JSON; the sender has to change the request.
    #[error("body is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A body is JSON of another kind or version.
    #[error("expected AdmissionReview of admission.k8s.io v1 or v1beta1")]
    Kind,
    /// A review has no request, or the request has no uid.
    #[error("review has no request with a uid")]
    Request,
    /// A certificate or key is not PEM of the expected kind.
    #[error("{what} is not usable PEM: {source}")]
    Pem {
        /// Which of the pair's texts.
        what: &'static str,
        /// The parser's answer.
        source: rustls_pki_types::pem::Error,
    },
    /// The authorities of clients cannot be used.
    #[error("the authorities of clients cannot be used: {0}")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
    /// TLS refuses the certificate or its key.
    #[error("TLS does not accept the certificate: {0}")]
    Tls(#[from] rustls::Error),
    /// A file of the certificate directory could not be read or written; the volume or its mode is wrong.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The API server refused, or all attempts ended in a conflict. The next reconcile may succeed.
    #[error("{object}: {source}")]
    Api {
        /// What was read or written.
        object: String,
        /// Its answer.
        source: ApiError,
    },
    /// A webhook configuration does not exist; the installer has to create it.
    #[error("{0} does not exist; install it: kruise manifests | kubectl apply -f -")]
    NotInstalled(String),
    /// The Secret of the external issuer lacks a key; wait for the issuer.
    #[error("the external certificate has no {0}")]
    External(&'static str),
    /// A configuration or CRD does not trust the external CA yet; wait for whoever injects it.
    #[error("caBundle of {0} does not match the external caBundle")]
    Bundle(String),
    /// A blocking task was cancelled, which only happens when the process ends.
    #[error("interrupted")]
    Interrupted,
}

/// Why a request to the API server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// There is no such object.
    #[error("not found")]
    NotFound,
    /// It was changed since it was read, or exists already.
    #[error("changed by somebody else")]
    Conflict,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}
