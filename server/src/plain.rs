//! The plain HTTP servers: health for the kubelet, metrics for Prometheus.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode,
    header::{ALLOW, AUTHORIZATION, WWW_AUTHENTICATE},
};
use hyper::body::Incoming;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    health::{self, Check, Verdict},
    listen::{self, Answer, Caller, Limits, Respond, answer, text},
    pieces::Pieces,
    tls::Tls,
};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Renders all metrics.
pub type Renderer = dyn Fn() -> String + Send + Sync;

/// Says whether a process works, and why not.
pub type Judge = dyn Fn() -> Verdict + Send + Sync;

/// Whether a caller may read metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may.
    Granted,
    /// Its token is nobody's: code 401.
    Unknown,
    /// It may not: code 403.
    Forbidden,
    /// That could not be found out: code 503.
    Undecided,
}

/// Says whether the owner of a bearer token may read metrics.
pub type Guard = dyn Fn(String) -> BoxFuture<'static, Access> + Send + Sync;

/// Content of a path.
#[derive(Clone)]
pub enum Page {
    /// Checks, also below the path.
    Checks(Vec<Check>),
    /// `ok`, or code 500 with the reason as it is.
    Verdict(Arc<Judge>),
    /// Metrics in the OpenMetrics text format.
    Metrics(Arc<Renderer>),
}

/// Pages by path.
#[derive(Clone, Default)]
pub struct PlainServer {
    /// The pages; paths begin with a slash and end without one.
    pub pages: BTreeMap<String, Page>,
    /// Limits of the listener.
    pub limits: Limits,
    /// The certificate; without one the server speaks plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// Who may read metrics; without one everybody.
    pub guard: Option<Arc<Guard>>,
}

impl PlainServer {
    /// `/healthz` and `/readyz`.
    pub fn health(live: Vec<Check>, ready: Vec<Check>) -> Self {
        let pages = [("/healthz", live), ("/readyz", ready)];
        Self {
            pages: pages
                .map(|(path, checks)| (path.to_owned(), Page::Checks(checks)))
                .into(),
            ..Self::default()
        }
    }

    /// `/metrics`.
    pub fn metrics(render: Arc<Renderer>) -> Self {
        Self {
            pages: BTreeMap::from([("/metrics".to_owned(), Page::Metrics(render))]),
            ..Self::default()
        }
    }

    /// Serves until `stop` becomes true or its sender is dropped, then lets requests in flight finish.
    pub async fn serve(self, listener: TcpListener, stop: watch::Receiver<bool>) {
        let (limits, tls) = (self.limits.clone(), self.tls.clone());
        listen::run(listener, tls, Arc::new(self), limits, stop).await;
    }

    /// The refusal of a caller that may not read metrics.
    async fn refusal(&self, headers: &HeaderMap) -> Option<Answer> {
        let guard = self.guard.as_ref()?;
        let access = match bearer(headers) {
            Some(token) => guard(token.to_owned()).await,
            None => Access::Unknown,
        };
        match access {
            Access::Granted => None,
            Access::Unknown => {
                let mut answer = text(
                    StatusCode::UNAUTHORIZED,
                    "a bearer token is needed that the API server knows",
                );
                let scheme = HeaderValue::from_static("Bearer");
                answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
                Some(answer)
            }
            Access::Forbidden => Some(text(StatusCode::FORBIDDEN, "the right to get /metrics is needed")),
            Access::Undecided => Some(text(
                StatusCode::SERVICE_UNAVAILABLE,
                "the token could not be reviewed",
            )),
        }
    }
}

/// The bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Respond for PlainServer {
    async fn respond(&self, _: &Caller, request: Request<Incoming>) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
            let allowed = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, allowed);
            return answer;
        }
        let (path, query) = (request.uri().path(), request.uri().query());
        for (at, page) in &self.pages {
            match page {
                Page::Metrics(render) if path == at => {
                    if let Some(refusal) = self.refusal(request.headers()).await {
                        return refusal;
                    }
                    return answer(StatusCode::OK, OPENMETRICS, Pieces::one(render()));
                }
                Page::Verdict(judge) if path == at => {
                    return match judge() {
                        Ok(()) => text(StatusCode::OK, "ok"),
                        Err(reason) => text(StatusCode::INTERNAL_SERVER_ERROR, reason),
                    };
                }
                Page::Metrics(_) | Page::Verdict(_) => {}
                Page::Checks(checks) => {
                    if let Some(answer) = health::respond(at, checks, path, query).await {
                        return answer;
                    }
                }
            }
        }
        text(StatusCode::NOT_FOUND, "not found")
    }
}
