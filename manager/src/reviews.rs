//! Admission reviews: pure functions, with lookups in caches and at the API server.
//!
//! A review that the caches suffice for is decided at once, on the thread that serves the connection. Any other one
//! reads from the API server, or waits for first lists, within the time limit of its webhook. After the limit, the
//! response is 503, and the client tries again. So it is if a status that the request needs cannot be stored; an
//! eviction is then 429, because clients try an eviction again after no other code.

use std::{sync::Arc, time::Duration};

use futures::future::try_join_all;
use jiff::Timestamp;
use kruise_admission::{
    Lookups, Options, Outcome, Reason, Request, Response,
    lookup::ObjectName,
    protocol::Write,
    table::{TimeLimit, Webhook},
    widening::Widening,
};
use kruise_frame::lookup::{Effect, LookupSource, Progress, Server, Undecided, Verdict};
use kruise_kinds::{
    charges::{Charges, NotStored, Review},
    refusals::Refusals,
    webhook_caches::ReviewCache,
};
use kruise_runtime::{Client, metrics::PodMetrics};
use kruise_server::{review, webhook::Decision};
use tokio::time::timeout;

use super::{
    side_effects::{Peer, SideEffect, SideEffects},
    widening::Widener,
};

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
    /// What requests need to be stored.
    charges: Charges,
    /// Refusals by guards.
    refusals: Refusals,
    /// What came of effects.
    side_effects: SideEffects,
}

/// What reviews do beside a response.
pub(super) struct Effects {
    /// `None` if match conditions are not the manager's to write.
    pub(super) widener: Option<Widener>,
    /// What requests need to be stored.
    pub(super) charges: Charges,
    /// Refusals by guards.
    pub(super) refusals: Refusals,
}

impl Reviews {
    /// Objects that `cache` does not have are read with `client`.
    pub(super) fn new(
        options: Options,
        cache: ReviewCache,
        client: Client,
        metrics: PodMetrics,
        effects: Effects,
    ) -> Self {
        let server = Server::new(client.clone(), &cache.namespace);
        let side_effects = SideEffects::new(Arc::new(cache.clone()), metrics.clone());
        let server = Some(server.measured(metrics.clone()));
        Self {
            options,
            source: LookupSource { cache, server },
            client,
            metrics,
            widener: effects.widener,
            charges: effects.charges,
            refusals: effects.refusals,
            side_effects,
        }
    }

    /// The current time.
    pub(super) fn now(&self) -> Timestamp {
        self.client.now()
    }

    /// Reviews a request: at once if the caches have all lookups, and later if not.
    pub(super) fn decide(self: &Arc<Self>, webhook: Webhook, request: Request, peer: Peer) -> Decision {
        let mut lookups = Lookups::default();
        let review = |lookups: &Lookups| self.review(webhook, &request, lookups);
        let progress = match self.source.advance(&review, &mut lookups) {
            Progress::Decided(verdict) if !self.is_to_be_carried_out(&verdict) => {
                let response = self.recorded(verdict);
                log_denial(&response, webhook, &request);
                return to_server_response(response).into();
            }
            progress => progress,
        };
        let reviews = self.clone();
        Decision::Later(Box::pin(async move {
            let request = Arc::new(request);
            let review = {
                let (reviews, request) = (reviews.clone(), request.clone());
                move |lookups: &Lookups| reviews.review(webhook, &request, lookups)
            };
            let limit = webhook.time_limit();
            let response = match reviews
                .finished(progress, &review, &mut lookups, limit.lookups)
                .await
            {
                Ok(verdict) => {
                    let review: Review = Arc::new(review);
                    match reviews.believed(&verdict, &request, peer) {
                        Ok(effects) => {
                            let response = reviews.carried_out(verdict, review, lookups, limit).await;
                            if matches!(response, Response::Allow { .. }) {
                                for effect in effects {
                                    reviews.side_effects.has_had(peer, effect);
                                }
                            }
                            response
                        }
                        Err(unavailable) => unavailable,
                    }
                }
                Err(unavailable) => unavailable,
            };
            log_denial(&response, webhook, &request);
            to_server_response(response)
        }))
    }

    /// The side effects that a review is to have; the response if those of its peer or object are not believed now.
    fn believed(
        &self,
        verdict: &Verdict,
        request: &Request,
        peer: Peer,
    ) -> Result<Vec<SideEffect>, Response> {
        let effects: Vec<SideEffect> = match &verdict.effect {
            Some(Effect::Widen(widenings)) if self.widener.is_some() => widenings
                .iter()
                .map(|widening| SideEffect::widening(&widening.object))
                .collect(),
            Some(Effect::Write(write)) => SideEffect::of_pod(write.name(), request).into_iter().collect(),
            _ => Vec::new(),
        };
        for effect in &effects {
            self.side_effects.may_have(peer, effect).map_err(|why| {
                let is_eviction =
                    matches!(&verdict.effect, Some(Effect::Write(write)) if write.is_eviction());
                to_be_tried_again(unavailable(&why), is_eviction)
            })?;
        }
        Ok(effects)
    }

    fn is_to_be_carried_out(&self, verdict: &Verdict) -> bool {
        match verdict.effect {
            Some(Effect::Widen(_)) => self.widener.is_some(),
            Some(Effect::Write(_)) => true,
            None => false,
        }
    }

    /// The decision, after lookups that take no longer than this; the response if there is none.
    async fn finished(
        &self,
        progress: Progress,
        review: &impl Fn(&Lookups) -> Outcome,
        lookups: &mut Lookups,
        limit: Duration,
    ) -> Result<Verdict, Response> {
        match timeout(limit, self.source.finish(progress, review, lookups)).await {
            Ok(Ok(verdict)) => Ok(verdict),
            Ok(Err(error)) => Err(unavailable(&format!(
                "the API server does not tell what it depends on: {}",
                error.source
            ))),
            Err(_) => Err(unavailable(
                "the API server is too slow to tell what it depends on",
            )),
        }
    }

    /// The response, once what has to be done before it is done.
    async fn carried_out(
        &self,
        verdict: Verdict,
        review: Review,
        lookups: Lookups,
        limit: TimeLimit,
    ) -> Response {
        match (&verdict.effect, &self.widener) {
            (Some(Effect::Widen(widenings)), Some(widener)) => {
                let widened = self.widened(widener, widenings, limit.writes).await;
                widened.map_or_else(|unavailable| unavailable, |()| verdict.response)
            }
            (Some(Effect::Write(write)), _) => {
                let is_eviction = write.is_eviction();
                let stored = self.stored((**write).clone(), review, lookups, limit.lookups);
                let response = match timeout(limit.writes, stored).await {
                    Ok(Ok(verdict)) => Ok(self.recorded(verdict)),
                    Ok(Err(response)) => Err(response),
                    Err(_) => Err(unavailable("the API server is too slow to store a status")),
                };
                response.unwrap_or_else(|unavailable| to_be_tried_again(unavailable, is_eviction))
            }
            _ => self.recorded(verdict),
        }
    }

    /// Returns once webhooks are called for more requests.
    async fn widened(
        &self,
        widener: &Widener,
        widenings: &[Widening],
        limit: Duration,
    ) -> Result<(), Response> {
        let each = widenings.iter().map(|widening| async move {
            let (webhook, configuration) = (widening.webhook, Widener::configuration(widening));
            match timeout(limit, widener.widen(widening)).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(unavailable(&format!(
                    "API servers cannot be told to call the webhook {webhook} for it: {configuration}: {error}"
                ))),
                Err(_) => Err(unavailable(&format!(
                    "the API server is too slow to store {configuration}"
                ))),
            }
        });
        try_join_all(each).await?;
        for widening in widenings {
            self.source.cache.webhook_caches.is_reviewed(&widening.object);
        }
        Ok(())
    }

    /// The decision once what it needs is stored. A review that has to be made again may come to another one. A
    /// deletion may need two writes: the charge of a budget, and then the count of the pods of a subset.
    async fn stored(
        &self,
        mut write: Write,
        review: Review,
        mut lookups: Lookups,
        limit: Duration,
    ) -> Result<Verdict, Response> {
        loop {
            let (object, charges) = (write.object(), &self.charges);
            let stored = match write {
                Write::Charge(_) => charges.budgets.store(&object, &review, &lookups).await,
                Write::Count(_) => charges.spreads.store(&object, &review, &lookups).await,
            };
            let (outcome, known) = stored.map_err(|error| not_stored(&object, &error))?;
            lookups = known;
            let progress = match Verdict::of(outcome) {
                Ok(verdict) => match verdict.effect {
                    Some(Effect::Write(next)) => {
                        write = *next;
                        continue;
                    }
                    _ => return Ok(verdict),
                },
                Err(Undecided::Missing(_)) => self.source.advance(&|lookups| review(lookups), &mut lookups),
                Err(Undecided::Retry(pause, lookups)) => Progress::Retry(pause, lookups),
            };
            let verdict = self
                .finished(
                    progress,
                    &|lookups: &Lookups| review(lookups),
                    &mut lookups,
                    limit,
                )
                .await?;
            match verdict.effect {
                Some(Effect::Write(next)) => write = *next,
                _ => return Ok(verdict),
            }
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

/// One line for each request that is refused.
fn log_denial(response: &Response, webhook: Webhook, request: &Request) {
    let Response::Deny { code, message, .. } = response else {
        return;
    };
    let Request {
        kind,
        namespace,
        name,
        user,
        operation,
        ..
    } = request;
    tracing::info!(
        webhook = webhook.path(),
        kind,
        namespace,
        name,
        ?operation,
        user,
        code,
        reason = message,
        "refused"
    );
}

fn not_stored(object: &ObjectName, error: &NotStored) -> Response {
    unavailable(&format!(
        "the status of {}/{} cannot be stored: {error}",
        object.namespace, object.name
    ))
}

/// The response to a request that may pass later. Clients try an eviction again after 429 only.
fn to_be_tried_again(response: Response, is_eviction: bool) -> Response {
    match response {
        Response::Deny {
            code: 503, message, ..
        } if is_eviction => Response::Deny {
            code: 429,
            reason: Some(Reason::TooManyRequests),
            message,
        },
        response => response,
    }
}

fn unavailable(why: &str) -> Response {
    Response::denied(503, format!("no decision can be made yet: {why}; try again"))
}

/// Converts a response of a review to one of the server.
pub(super) fn to_server_response(response: Response) -> review::Response {
    match response {
        Response::Allow { patch, warnings } => review::Response::Allow { patch, warnings },
        Response::Deny {
            code,
            reason,
            message,
        } => review::Response::Deny {
            code,
            reason: reason.map(Reason::as_str),
            message,
        },
    }
}

#[cfg(test)]
mod tests;
