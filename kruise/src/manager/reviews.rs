//! Admission reviews: pure functions, with lookups in caches and at the API server.
//!
//! A review that the caches suffice for is decided at once, on the thread that serves the connection. Any other one reads
//! from the API server, or waits for first lists, within the time limit of its webhook. After the limit, the response is
//! 503, and the client tries again.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_admission::{Lookups, Options, Outcome, Request, Response, manifests::MUTATING, table::Webhook};
use kruise_runtime::{Client, metrics::PodMetrics};
use kruise_server::{review, webhook::Decision};
use tokio::time::timeout;

use crate::{
    controllers::webhook_caches::ReviewCache,
    lookup::{LookupSource, Progress, Server, Verdict},
    refusals::Refusals,
};

use super::widening::Widener;

/// Reviews requests with the lookups that they need.
pub(super) struct Reviews {
    options: Options,
    source: LookupSource<ReviewCache>,
    /// For its clock.
    client: Client,
    /// Durations of the steps of the pod webhook.
    metrics: PodMetrics,
    /// `None` if match conditions are not the manager's to write.
    widener: Option<Widener>,
    /// Refusals by guards.
    refusals: Refusals,
}

impl Reviews {
    /// Objects that `cache` does not have are read with `client`.
    pub(super) fn new(
        options: Options,
        cache: ReviewCache,
        client: Client,
        metrics: PodMetrics,
        widener: Option<Widener>,
        refusals: Refusals,
    ) -> Self {
        let server = Some(Server {
            client: client.clone(),
            namespace: cache.namespace.clone(),
        });
        Self {
            options,
            source: LookupSource { cache, server },
            client,
            metrics,
            widener,
            refusals,
        }
    }

    /// The current time.
    pub(super) fn now(&self) -> Timestamp {
        self.client.now()
    }

    /// Reviews a request: at once if the caches have all lookups, and later if not.
    pub(super) fn decide(self: &Arc<Self>, webhook: Webhook, request: Request) -> Decision {
        let mut lookups = Lookups::default();
        let review = |lookups: &Lookups| self.review(webhook, &request, lookups);
        let progress = match self.source.advance(&review, &mut lookups) {
            Progress::Decided(verdict) if verdict.widening.is_none() || self.widener.is_none() => {
                return to_server_response(self.recorded(verdict)).into();
            }
            progress => progress,
        };
        let reviews = self.clone();
        Decision::Later(Box::pin(async move {
            let review = |lookups: &Lookups| reviews.review(webhook, &request, lookups);
            let finished = reviews.source.finish(progress, &review, &mut lookups);
            let limit = webhook.time_limit().lookups;
            to_server_response(match timeout(limit, finished).await {
                Ok(Ok(verdict)) => reviews.carried_out(verdict, limit).await,
                Ok(Err(error)) => unavailable(&format!(
                    "the API server does not tell what it depends on: {}",
                    error.source
                )),
                Err(_) => unavailable("the API server is too slow to tell what it depends on"),
            })
        }))
    }

    /// The response, once what has to be done before it is done.
    async fn carried_out(&self, verdict: Verdict, limit: Duration) -> Response {
        let (Some(widening), Some(widener)) = (&verdict.widening, &self.widener) else {
            return self.recorded(verdict);
        };
        match timeout(limit, widener.widen(widening)).await {
            Ok(Ok(())) => {
                self.source.cache.webhook_caches.set_is_reviewed(&widening.object);
                verdict.response
            }
            Ok(Err(error)) => unavailable(&format!(
                "API servers cannot be told to call the webhook {} for it: {MUTATING}: {error}",
                widening.webhook
            )),
            Err(_) => unavailable(&format!("the API server is too slow to store {MUTATING}")),
        }
    }

    /// The response. A refusal by a guard is counted and logged first.
    fn recorded(&self, verdict: Verdict) -> Response {
        if let Some(refused) = &verdict.refused {
            self.refusals.record(refused);
        }
        verdict.response
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

/// Converts a response of a review to one of the server.
pub(super) fn to_server_response(response: Response) -> review::Response {
    match response {
        Response::Allow { patch, warnings } => review::Response::Allow { patch, warnings },
        Response::Deny { code, message } => review::Response::Deny { code, message },
    }
}

#[cfg(test)]
mod tests;
