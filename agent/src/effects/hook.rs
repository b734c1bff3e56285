//! PreStop hooks: a command in the container, or a request or a connection to the pod.

use std::time::Duration;

use cri::Exec;
use kruise_agent_core::Handler;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::failure::NO_RUNTIME;
use super::get::Target;
use crate::runtime::Client;

/// How hooks call themselves.
const AGENT: &str = "kube-lifecycle/kruise-daemon";

/// How much of a command's error output is reported.
const MOST_ERRORS: usize = 512;

/// Runs a hook. Any response to a request is a success, as for a kubelet.
///
/// # Errors
/// Why it failed, in plain words.
pub(super) async fn run(
    client: Option<Client>,
    container: &str,
    hook: Handler,
    limit: Duration,
) -> Result<(), Box<str>> {
    let ran = async {
        match hook {
            Handler::Exec(command) => exec(client, container, &command, limit).await,
            Handler::Http {
                scheme,
                host,
                port,
                path,
                headers,
            } => {
                let target = Target {
                    is_tls: &*scheme == "https",
                    host: &host,
                    port,
                };
                target.get(&path, &headers, AGENT, 0).await.map(drop)
            }
            Handler::Tcp { host, port } => {
                let connected = TcpStream::connect((&*host, port)).await;
                connected.map(drop).map_err(|error| error.to_string())
            }
        }
    };
    match timeout(limit, ran).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(format!("it did not end within {} s", limit.as_secs_f32()).into()),
    }
}

async fn exec(
    client: Option<Client>,
    container: &str,
    command: &[Box<str>],
    limit: Duration,
) -> Result<(), String> {
    let client = client.ok_or(NO_RUNTIME)?;
    let command: Vec<String> = command.iter().map(ToString::to_string).collect();
    let exec = Exec {
        container,
        command: &command,
        timeout: limit,
        output_bytes: MOST_ERRORS,
    };
    let output = client.exec(&exec).await.map_err(|error| error.to_string())?;
    if output.exit_code == 0 {
        return Ok(());
    }
    // More people may read events and logs than what containers print.
    tracing::info!(container, exit_code = output.exit_code, "a preStop hook failed");
    let errors = String::from_utf8_lossy(&output.stderr);
    tracing::debug!(container, errors = errors.trim(), "what the preStop hook said");
    Err(format!("it ended with exit code {}", output.exit_code))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::ServerConfig;
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// Enough for any machine.
    const PATIENCE: Duration = Duration::from_mins(1);

    fn hook(scheme: &str, port: u16, headers: &[(&str, &str)]) -> Handler {
        let headers = headers.iter();
        Handler::Http {
            scheme: scheme.into(),
            host: "127.0.0.1".into(),
            port,
            path: "bye".into(),
            headers: headers
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
        }
    }

    async fn respond(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            text.push(char::from(stream.read_u8().await.unwrap()));
        }
        stream.write_all(b"HTTP/1.1 204 Bye\r\n\r\n").await.unwrap();
        stream.flush().await.unwrap();
        text
    }

    #[tokio::test]
    async fn a_pod_may_have_a_certificate_of_an_unknown_authority() {
        let pair = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            respond(acceptor.accept(stream).await.unwrap()).await
        });
        let headers = [("Host", "pod.example"), ("X-A", "1"), ("X-A", "2")];
        assert_eq!(
            run(None, "c", hook("https", port, &headers), PATIENCE).await,
            Ok(())
        );
        let request = server.await.unwrap();
        assert!(request.starts_with("GET /bye HTTP/1.1\r\n"), "{request}");
        for line in ["host: pod.example", "x-a: 1", "x-a: 2", "accept: */*"] {
            assert!(request.lines().any(|one| one == line), "{line}\n{request}");
        }
    }

    #[tokio::test]
    async fn a_hook_that_cannot_be_run_says_why() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = closed.local_addr().unwrap().port();
        let silent = run(None, "c", hook("http", port, &[]), Duration::from_millis(10)).await;
        assert_eq!(silent, Err("it did not end within 0.01 s".into()));
        drop(closed);
        assert!(
            run(None, "c", hook("http", port, &[]), PATIENCE).await.is_err(),
            "the port is closed"
        );
        for (name, value) in [("a b", "1"), ("a", "1\n2")] {
            let error = run(None, "c", hook("http", port, &[(name, value)]), PATIENCE).await;
            assert!(error.unwrap_err().starts_with("header "), "{name}");
        }
        let connect = |port| Handler::Tcp {
            host: "127.0.0.1".into(),
            port,
        };
        assert!(run(None, "c", connect(port), PATIENCE).await.is_err());
        let open = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = open.local_addr().unwrap().port();
        assert_eq!(run(None, "c", connect(port), PATIENCE).await, Ok(()));
        let exec = Handler::Exec(["true".into()].into());
        assert_eq!(run(None, "c", exec, PATIENCE).await, Err(NO_RUNTIME.into()));
    }
}
