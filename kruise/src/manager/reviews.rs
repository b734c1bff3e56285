//! Reviews whose answer depends on other objects: pure functions, and who tells them what they ask.
//!
//! The caches are asked first. What is not in them, such as a namespace that was just made, is asked of the API server,
//! all of it within a limit, in which the first list of SidecarSets is waited for, too: an answer never waits longer for
//! a server that is slow or gone. Then the answer is 503 and whoever asks tries again.

use std::{sync::Arc, time::Duration};

use kruise_admission::{
    Answer, Options, Request,
    pod::{Known, Need, Outcome},
};
use kruise_runtime::{Client, metrics::PodMetrics};
use kruise_server::webhook::Decision;
use kruise_views::PodView;
use kube_cache::SharedInformer;
use tokio::time::{sleep, timeout};

use super::admission::verdict;
use crate::{
    controllers::lookups::{Found, Lookups},
    lookup::look_up,
};

/// Time for all that the API server is asked for one review.
pub(super) const LIMIT: Duration = Duration::from_millis(300);

/// As [`LIMIT`], where nobody but the author of an object waits, and no pod.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether the first lists are in.
const STEP: Duration = Duration::from_millis(5);

/// Questions one after the other that a review may have: sets, then namespaces and revisions.
const ROUNDS: usize = 4;

/// Decides a request, or says what it has to know first.
pub(super) type Decide = fn(&Reviews, &Request, &Known) -> Outcome;

/// Reviews what needs lookups.
#[derive(Clone)]
pub(super) struct Reviews {
    pub(super) options: Options,
    pub(super) caches: Lookups,
    /// Pods, which a CloneSet may name.
    pub(super) pods: SharedInformer<PodView>,
    /// For what is not in the caches.
    pub(super) client: Client,
    /// Where revisions of SidecarSets are.
    pub(super) namespace: String,
    /// Times of steps.
    pub(super) metrics: PodMetrics,
}

/// How far a review gets with the caches.
enum Progress {
    Done(Answer),
    Asks(Vec<Need>),
    /// The first lists are not in.
    NotYet,
}

impl Reviews {
    /// Decides, at once if the caches know all there is to know.
    pub(super) fn decide(self: &Arc<Self>, decide: Decide, limit: Duration, request: Request) -> Decision {
        let mut known = Known {
            now: self.client.now(),
            ..Known::default()
        };
        let needs = match self.advance(decide, &request, &mut known) {
            Progress::Done(answer) => return verdict(answer).into(),
            Progress::Asks(needs) => needs,
            Progress::NotYet => Vec::new(),
        };
        let reviews = self.clone();
        Decision::Later(Box::pin(async move {
            let asking = reviews.ask(decide, request, known, needs);
            let answer = timeout(limit, asking).await;
            verdict(
                answer
                    .unwrap_or_else(|_| unavailable("the API server is too slow to tell what it depends on")),
            )
        }))
    }

    fn advance(&self, decide: Decide, request: &Request, known: &mut Known) -> Progress {
        for _ in 0..ROUNDS {
            let needs = match decide(self, request, known) {
                Outcome::Answer(answer) => return Progress::Done(answer),
                Outcome::Needs(needs) => needs,
            };
            let mut missing = Vec::new();
            for need in needs {
                match self.caches.answer(&self.namespace, &need, known) {
                    Found::Yes => {}
                    Found::No => missing.push(need),
                    Found::NotYet => return Progress::NotYet,
                }
            }
            if !missing.is_empty() {
                return Progress::Asks(missing);
            }
        }
        Progress::Done(Answer::Deny {
            code: 500,
            message: "no decision can be made: what it needs is never all known".to_owned(),
        })
    }

    /// Asks the API server what the caches do not know, and waits for their first lists.
    async fn ask(&self, decide: Decide, request: Request, mut known: Known, mut needs: Vec<Need>) -> Answer {
        loop {
            for need in &needs {
                if let Err(error) = look_up(&self.client, &self.namespace, need, &mut known).await {
                    return unavailable(&format!(
                        "the API server does not tell what it depends on: {error}"
                    ));
                }
            }
            needs = match self.advance(decide, &request, &mut known) {
                Progress::Done(answer) => return answer,
                Progress::Asks(more) => more,
                Progress::NotYet => {
                    sleep(STEP).await;
                    Vec::new()
                }
            };
        }
    }
}

fn unavailable(why: &str) -> Answer {
    Answer::Deny {
        code: 503,
        message: format!("no decision can be made yet: {why}; try again"),
    }
}

#[cfg(test)]
mod tests;
