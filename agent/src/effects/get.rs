//! GET requests to pods, of preStop hooks and probes.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) is_tls: bool,
    /// An IPv6 address has no brackets.
    pub(super) host: &'a str,
    pub(super) port: u16,
}

/// What the pod responds.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    /// Where else it may be found.
    pub(super) location: Option<String>,
    /// The beginning of its body.
    pub(super) body: Vec<u8>,
}

impl Target<'_> {
    /// Sends a request; keeps so many bytes of the body, and does not wait for more. `agent` is how it calls
    /// itself, unless the headers say.
    ///
    /// # Errors
    /// In plain words, if no response came.
    pub(super) async fn get(
        &self,
        path: &str,
        headers: &[(Box<str>, Box<str>)],
        agent: &'static str,
        most: usize,
    ) -> Result<Answer, String> {
        let request = self.request(path, headers, agent)?;
        let stream = TcpStream::connect((self.host, self.port)).await;
        let stream = stream.map_err(|error| error.to_string())?;
        if !self.is_tls {
            return send(stream, request, most).await;
        }
        let name = ServerName::try_from(self.host.to_owned()).map_err(|error| error.to_string())?;
        let trusting = TRUSTING.as_ref().map_err(Clone::clone)?;
        let stream = TlsConnector::from(Arc::clone(trusting))
            .connect(name, stream)
            .await;
        send(stream.map_err(|error| error.to_string())?, request, most).await
    }

    fn request(
        &self,
        path: &str,
        headers: &[(Box<str>, Box<str>)],
        agent: &'static str,
    ) -> Result<http::Request<Empty<Bytes>>, String> {
        let path = path.trim_start_matches('/');
        let mut request = http::Request::get(format!("/{path}"))
            .body(Empty::new())
            .map_err(|error| format!("its path: {error}"))?;
        let all = request.headers_mut();
        for (name, value) in headers {
            let name = HeaderName::try_from(&**name).map_err(|error| format!("header {name:?}: {error}"))?;
            let value = HeaderValue::try_from(&**value).map_err(|error| format!("header {name}: {error}"))?;
            all.append(name, value);
        }
        let host = if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        };
        let host = HeaderValue::try_from(host).map_err(|error| format!("its host: {error}"))?;
        all.entry(HOST).or_insert(host);
        for (name, value) in [(USER_AGENT, agent), (ACCEPT, "*/*")] {
            let given = all.entry(&name).or_insert(HeaderValue::from_static(value));
            // As for a kubelet: who gives an empty value wants none.
            if given.is_empty() {
                all.remove(&name);
            }
        }
        all.insert(CONNECTION, HeaderValue::from_static("close"));
        Ok(request)
    }
}

/// Sends a request, and waits for the response and the beginning of its body.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: http::Request<Empty<Bytes>>,
    most: usize,
) -> Result<Answer, String> {
    let opened = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| error.to_string())?;
    let answer = async move {
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| error.to_string())?;
        let (head, mut body) = response.into_parts();
        let mut beginning = Vec::new();
        while beginning.len() < most
            && let Some(frame) = body.frame().await
        {
            let frame = frame.map_err(|error| error.to_string())?;
            let bytes = frame.data_ref().map(|bytes| &**bytes).unwrap_or_default();
            let room = most.saturating_sub(beginning.len());
            beginning.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
        let location = head.headers.get(LOCATION).and_then(|text| text.to_str().ok());
        Ok(Answer {
            code: head.status.as_u16(),
            location: location.map(ToOwned::to_owned),
            body: beginning,
        })
    };
    tokio::pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The connection ends with this function. It may have ended after the response came.
        _ended = connection => answer.await,
    }
}

/// Made once: it loads the ciphers.
static TRUSTING: LazyLock<Result<Arc<ClientConfig>, String>> = LazyLock::new(trusting);

/// Accepts any certificate: those of pods are not signed by a known authority.
fn trusting() -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
