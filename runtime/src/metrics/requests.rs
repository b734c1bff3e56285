//! Requests to the API server under the name of Go's client.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::client::Observer;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Collection {
    path: String,
}

/// `rest_client_requests_total`, and what responses show besides. Clones count together.
#[derive(Clone, Debug)]
pub struct Requests {
    answered: Family<Request, Counter>,
    skipped: Family<Collection, Counter>,
    skew: Gauge<f64, AtomicU64>,
}

impl Requests {
    /// Adds the family to `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let family = Family::default();
        registry.register(
            "rest_client_requests",
            "API requests by code, method and host",
            family.clone(),
        );
        let skipped = Family::default();
        registry.register(
            "kruise_skipped_objects",
            "Objects that nothing acts on, because they are nested too deep to be read, by the path of their collection",
            skipped.clone(),
        );
        let skew = Gauge::default();
        registry.register(
            "kruise_api_server_clock_skew_seconds",
            "How far the clock of the API server is ahead; below 0, how far behind",
            skew.clone(),
        );
        Self {
            answered: family,
            skipped,
            skew,
        }
    }
}

impl Observer for Requests {
    fn requested(&self, method: &str, host: &str, code: &str) {
        let request = Request {
            code: code.to_owned(),
            method: method.to_owned(),
            host: host.to_owned(),
        };
        self.answered.get_or_create(&request).inc();
    }

    fn skipped(&self, path: &str) {
        let collection = Collection {
            path: path.to_owned(),
        };
        self.skipped.get_or_create(&collection).inc();
    }

    fn skewed(&self, seconds: f64) {
        self.skew.set(seconds);
    }
}
