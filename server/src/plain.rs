//! The plain HTTP servers: health for the kubelet, metrics for Prometheus.

use std::{collections::BTreeMap, sync::Arc};

use http::{HeaderValue, Method, Request, StatusCode, header::ALLOW};
use hyper::body::Incoming;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    health::{self, Check, Verdict},
    listen::{self, Answer, Caller, Limits, Respond, answer, text},
    pieces::Pieces,
};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Renders all metrics.
pub type Renderer = dyn Fn() -> String + Send + Sync;

/// Says whether a process works, and why not.
pub type Judge = dyn Fn() -> Verdict + Send + Sync;

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
}

impl PlainServer {
    /// `/healthz` and `/readyz`.
    pub fn health(live: Vec<Check>, ready: Vec<Check>) -> Self {
        let pages = [("/healthz", live), ("/readyz", ready)];
        Self {
            pages: pages
                .map(|(path, checks)| (path.to_owned(), Page::Checks(checks)))
                .into(),
            limits: Limits::default(),
        }
    }

    /// `/metrics`.
    pub fn metrics(render: Arc<Renderer>) -> Self {
        Self {
            pages: BTreeMap::from([("/metrics".to_owned(), Page::Metrics(render))]),
            limits: Limits::default(),
        }
    }

    /// Serves until `stop` becomes true or its sender is dropped, then lets requests in flight finish.
    pub async fn serve(self, listener: TcpListener, stop: watch::Receiver<bool>) {
        let limits = self.limits.clone();
        listen::run(listener, None, Arc::new(self), limits, stop).await;
    }
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
