//! Charges of reviews: one status write for all reviews that wait for the same budget.
//!
//! A review that ends in a charge is made again here, on the newest version of its budget that this replica knows. Reviews of
//! the same budget that come in during a write wait, and then share the next one. So charges of one replica never overtake
//! each other, and a charge waits for two writes at most.
//!
//! A write is for the version that was asked. If somebody else was faster, or if it is not known whether a write took
//! effect, the budget is read, and all its reviews are made again with every rule. A charge that is found recorded is not
//! made twice.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_admission::{
    Lookups, Outcome, Response,
    lookup::{Lookup, LookupResult, ObjectName},
};
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::injected::{Bug, is_injected};
use kruise_plan_kit::{Part, ResourceId, Target, ledger::status_patch};
use kruise_runtime::{ApiError, Client, Served, caches::Jitter};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex as TurnLock, oneshot},
    time::sleep,
};

use super::{Budgets, Read};

/// Attempts to store the charges of a group of reviews.
const ATTEMPTS: u32 = 12;

/// Longest pause before the second attempt, in milliseconds; before the third it is twice as long.
const PAUSE: u64 = 10;

const MERGE: &str = "application/merge-patch+json";

/// A review, as a function of what was looked up.
pub(crate) type Review = Arc<dyn Fn(&Lookups) -> Outcome + Send + Sync>;

/// Why a charge could not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotStored {
    /// The budget cannot be read or written.
    #[error("{0}")]
    Api(ApiError),
    /// Others were faster each time.
    #[error("it is changed by others all the time")]
    Overtaken,
}

/// Stores charges.
pub(crate) struct Charges {
    budgets: Budgets,
    client: Client,
    served: Arc<Served>,
    jitter: Jitter,
    queues: Mutex<BTreeMap<ObjectName, Arc<Queue>>>,
}

/// The reviews that wait for one budget.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Vec<Waiting>>,
    /// Held while the charges of some of them are stored.
    turn: TurnLock<()>,
}

/// A review that waits.
struct Waiting {
    review: Review,
    lookups: Lookups,
    reply: oneshot::Sender<Result<Outcome, NotStored>>,
}

impl Charges {
    /// None yet.
    pub(crate) fn new(budgets: Budgets, client: Client, served: Arc<Served>, jitter: Jitter) -> Self {
        Self {
            budgets,
            client,
            served,
            jitter,
            queues: Mutex::default(),
        }
    }

    /// Makes a review again on the newest version of the budget, and stores its charge. The outcome is never a charge: that
    /// became a response.
    pub(crate) async fn store(
        &self,
        budget: &ObjectName,
        review: &Review,
        lookups: &Lookups,
    ) -> Result<Outcome, NotStored> {
        let queue = self.queue(budget);
        let outcome = loop {
            let (reply, mut answered) = oneshot::channel();
            let waiting = Waiting {
                review: review.clone(),
                lookups: lookups.clone(),
                reply,
            };
            queue.waiting().push(waiting);
            let answer = tokio::select! {
                biased;
                answer = &mut answered => answer,
                turn = queue.turn.lock() => {
                    self.attend_to(budget, queue.take()).await;
                    drop(turn);
                    answered.await
                }
            };
            // Without an answer, whoever was about to store the charge has given up. It may be stored.
            if let Ok(answer) = answer {
                break answer;
            }
        };
        self.drop_queue(budget, queue);
        outcome
    }

    fn queue(&self, budget: &ObjectName) -> Arc<Queue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(budget.clone()).or_default().clone()
    }

    /// Queues that nobody uses are dropped.
    fn drop_queue(&self, budget: &ObjectName, queue: Arc<Queue>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        drop(queue);
        if queues
            .get(budget)
            .is_some_and(|queue| Arc::strong_count(queue) == 1)
        {
            queues.remove(budget);
        }
    }

    /// Answers these reviews, and stores their charges first.
    async fn attend_to(&self, name: &ObjectName, mut group: Vec<Waiting>) {
        let mut known = self.budgets.known(name);
        for attempt in 1..=ATTEMPTS {
            let read = match known.take() {
                Some(read) => Some(read),
                None => match self.read(name).await {
                    Ok(read) => read,
                    Err(error) => return refuse(group, &NotStored::Api(error)),
                },
            };
            let Some((before, after)) = decide(name, read, &mut group) else {
                return;
            };
            if is_injected(Bug::ChargeAfterRequest) {
                for one in group.drain(..) {
                    let _ = one.reply.send(Ok(Response::ALLOW.into()));
                }
                sleep(Duration::from_secs(1)).await;
            }
            match self.write(name, &before, &after).await {
                Ok(stored) => {
                    if let Some(stored) = stored {
                        self.budgets.note(name, &stored);
                    }
                    for one in group {
                        // The client may be gone.
                        let _ = one.reply.send(Ok(Response::ALLOW.into()));
                    }
                    return;
                }
                Err(error) if error.is_conflict() && is_injected(Bug::LostRaceCharged) => {
                    for one in group {
                        let _ = one.reply.send(Ok(Response::ALLOW.into()));
                    }
                    return;
                }
                Err(error) if error.is_conflict() || error.is_not_found() || error.may_have_happened() => {}
                Err(error) => return refuse(group, &NotStored::Api(error)),
            }
            self.budgets.forget(name);
            let pause = (self.jitter)() % PAUSE * u64::from(attempt);
            sleep(Duration::from_millis(pause)).await;
        }
        refuse(group, &NotStored::Overtaken);
    }

    fn target(name: &ObjectName) -> Target {
        Target {
            resource: ResourceId::POD_UNAVAILABLE_BUDGETS,
            namespace: name.namespace.as_str().into(),
            name: name.name.as_str().into(),
        }
    }

    /// The budget as the API server has it; `None` if there is none.
    async fn read(&self, name: &ObjectName) -> Result<Option<Read>, ApiError> {
        let path = self.served.path(&Self::target(name), Part::Main)?;
        match self.client.get::<Value>(&path).await {
            Ok(budget) => {
                let read = PodUnavailableBudget::from_value(budget).map(Arc::new);
                if let Ok(budget) = &read {
                    self.budgets.note(name, budget);
                }
                Ok(Some(read))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores the status if the budget is still the one that was asked. Returns the budget as it is stored; `None` if the
    /// answer cannot be read.
    async fn write(
        &self,
        name: &ObjectName,
        before: &PodUnavailableBudget,
        after: &PodUnavailableBudget,
    ) -> Result<Option<Arc<PodUnavailableBudget>>, ApiError> {
        let resource = ResourceId::POD_UNAVAILABLE_BUDGETS;
        let Some(mut patch) = status_patch(&before.status, &after.status) else {
            return Ok(None);
        };
        if let Some(patch) = patch.as_object_mut() {
            let metadata = &before.metadata;
            patch.insert(
                "metadata".into(),
                json!({"uid": metadata.uid, "resourceVersion": metadata.resource_version}),
            );
        }
        let path = self.served.path(&Self::target(name), Part::Status)?;
        let patch = self.served.status_patch(resource, patch)?;
        let stored: Value = self.client.patch(&path, MERGE, &patch).await?;
        Ok(PodUnavailableBudget::from_value(stored).ok().map(Arc::new))
    }
}

impl Queue {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.waiting())
    }
}

/// Makes each review on the budget as the ones before it leave it. Those that charge stay in the group. So do those that are
/// allowed after one that charges: what allows them may be its record, which is not stored yet. The others are answered.
/// Returns the budget before and after all charges; `None` if there are none.
fn decide(
    name: &ObjectName,
    read: Option<Read>,
    group: &mut Vec<Waiting>,
) -> Option<(Arc<PodUnavailableBudget>, Arc<PodUnavailableBudget>)> {
    let before = match &read {
        Some(Ok(budget)) => Some(budget.clone()),
        _ => None,
    };
    let mut result = read.map_or(LookupResult::NotFound, LookupResult::Budget);
    let mut after = None;
    for mut one in std::mem::take(group) {
        // The client has given up, and nothing comes of its request.
        if one.reply.is_closed() {
            continue;
        }
        one.lookups.insert(Lookup::Budget(name.clone()), result.clone());
        match (one.review)(&one.lookups) {
            Outcome::Write(charge) if charge.budget() == *name => {
                result = LookupResult::Budget(Ok(charge.after.clone()));
                after = Some(charge.after.clone());
                group.push(one);
            }
            Outcome::Response(Response::Allow { .. }) if after.is_some() => group.push(one),
            outcome => {
                let _ = one.reply.send(Ok(outcome));
            }
        }
    }
    before.zip(after)
}

fn refuse(group: Vec<Waiting>, why: &NotStored) {
    for one in group {
        let _ = one.reply.send(Err(why.clone()));
    }
}

#[cfg(test)]
impl Charges {
    /// Is there a queue for this budget?
    pub(crate) fn has_queue(&self, budget: &ObjectName) -> bool {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.contains_key(budget)
    }
}
