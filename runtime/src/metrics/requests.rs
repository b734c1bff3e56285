//! Requests to the API server under the name of Go's client.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::client::Observer;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    code: String,
    method: String,
    host: String,
}

/// `rest_client_requests_total`. Clones count together.
#[derive(Clone, Debug)]
pub struct Requests(Family<Request, Counter>);

impl Requests {
    /// Adds the family to `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let family = Family::default();
        registry.register(
            "rest_client_requests",
            "API requests by code, method and host",
            family.clone(),
        );
        Self(family)
    }
}

impl Observer for Requests {
    fn requested(&self, method: &str, host: &str, code: &str) {
        let request = Request {
            code: code.to_owned(),
            method: method.to_owned(),
            host: host.to_owned(),
        };
        self.0.get_or_create(&request).inc();
    }
}
