//! A client of a server that a test plays.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kruise_runtime::{Client, Clock, client::Settings};
use kube_client::client::Body;
use serde_json::Value;
use tower::Service;

/// The client. `respond` answers a request (method, path, body) with a status code and a body, or fails as a
/// connection does.
pub fn client<Responding>(
    respond: impl Fn(Method, String, Bytes) -> Responding + Clone + Send + Sync + 'static,
) -> Client
where
    Responding: Future<Output = io::Result<(u16, Value)>> + Send + 'static,
{
    let service = tower::service_fn(move |request: Request<Body>| {
        let respond = respond.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let (code, answer) = respond(head.method, head.uri.path().to_owned(), body).await?;
            let code = StatusCode::from_u16(code).map_err(io::Error::other)?;
            let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
            *response.status_mut() = code;
            Ok::<_, io::Error>(response)
        }
    });
    client_of(service)
}

/// The client of a service.
pub fn client_of<S>(service: S) -> Client
where
    S: Service<Request<Body>, Response = Response<Full<Bytes>>, Error = io::Error> + Send + 'static,
    S::Future: Send + 'static,
{
    let settings = Settings {
        user_agent: "kruise-manager/test".into(),
        timeout: Duration::from_secs(30),
        rate: None,
        host: "here".into(),
        observer: None,
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
    };
    Client::new(kube_client::Client::new(service, "default"), settings)
}
