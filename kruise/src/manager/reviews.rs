//! Reviews in a manager: pure functions, and the caches and requests that look other objects up for them.
//!
//! A review that the caches suffice for is decided at once, on the thread that serves the connection. Any other asks the
//! API server within the time limit of its webhook, in which first lists are waited for, too: no response
//! waits longer for a server that is slow or gone. It is 503 then, and the client tries again.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_admission::{Lookups, Options, Outcome, Request, Response, table::Webhook};
use kruise_runtime::{Client, metrics::PodMetrics};
use kruise_server::{review, webhook::Decision};
use tokio::time::timeout;

use crate::{
    controllers::lookups::ReviewCache,
    lookup::{LookupSource, Progress, Server},
};

/// What all reviews of a manager have in common.
pub(super) struct Reviews {
    options: Options,
    source: LookupSource<ReviewCache>,
    /// For the time.
    client: Client,
    /// Times of the steps of the pod webhook.
    metrics: PodMetrics,
}

impl Reviews {
    /// With `client` for what is not in the caches.
    pub(super) fn new(options: Options, cache: ReviewCache, client: Client, metrics: PodMetrics) -> Self {
        let server = Some(Server {
            client: client.clone(),
            namespace: cache.namespace.clone(),
        });
        Self {
            options,
            source: LookupSource { cache, server },
            client,
            metrics,
        }
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.client.now()
    }

    /// Reviews a request, at once if the caches have all that is to be looked up.
    pub(super) fn decide(self: &Arc<Self>, webhook: Webhook, request: Request) -> Decision {
        let mut lookups = Lookups::default();
        let review = |lookups: &Lookups| self.review(webhook, &request, lookups);
        let progress = match self.source.advance(&review, &mut lookups) {
            Progress::Decided(response) => return sent(response).into(),
            progress => progress,
        };
        let reviews = self.clone();
        Decision::Later(Box::pin(async move {
            let review = |lookups: &Lookups| reviews.review(webhook, &request, lookups);
            let finished = reviews.source.finish(progress, &review, &mut lookups);
            let limit = webhook.time_limit().lookups;
            sent(match timeout(limit, finished).await {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => unavailable(&format!(
                    "the API server does not tell what it depends on: {}",
                    error.source
                )),
                Err(_) => unavailable("the API server is too slow to tell what it depends on"),
            })
        }))
    }

    fn review(&self, webhook: Webhook, request: &Request, lookups: &Lookups) -> Outcome {
        let mut watch = self.metrics.review();
        webhook.review(request, self.options, lookups, &mut |step, result| {
            watch.ended(step, result);
        })
    }
}

fn unavailable(why: &str) -> Response {
    Response::Deny {
        code: 503,
        message: format!("no decision can be made yet: {why}; try again"),
    }
}

/// As the server sends it.
pub(super) fn sent(response: Response) -> review::Response {
    match response {
        Response::Allow { patch, warnings } => review::Response::Allow { patch, warnings },
        Response::Deny { code, message } => review::Response::Deny { code, message },
    }
}

#[cfg(test)]
mod tests;
