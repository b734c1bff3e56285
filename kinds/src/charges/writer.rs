//! One status write for all reviews that wait for the same object.
//!
//! A review that ends in a write is made again here, on the newest version of the object that this replica knows.
//! Reviews of the same object that come in during a write wait, and then share the next one. So writes of one
//! replica never overtake each other, and a review waits for two writes at most.
//!
//! A write is for the version that was asked. If somebody else was faster, or if it is not known whether a write took
//! effect, the object is read, and all its reviews are made again with every rule. What is found recorded is not
//! recorded twice. After the write each review is made once more, on the object as it left it, and says what comes
//! of its request.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_admission::{
    Lookups, Outcome, Response,
    lookup::{Decoded, Lookup, LookupResult, ObjectName},
};
use kruise_plan_kit::injected::is_injected;
use kruise_plan_kit::{Part, Target};
use kruise_runtime::{ApiError, Client, Served, caches::Jitter};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex as TurnLock, oneshot},
    time::sleep,
};

use super::{Change, Charged, Newest};

/// Longest pause before the second attempt, in milliseconds; before the third it is twice as long.
const PAUSE: u64 = 10;

const MERGE: &str = "application/merge-patch+json";

/// A review, as a function of what was looked up.
pub type Review = Arc<dyn Fn(&Lookups) -> Outcome + Send + Sync>;

/// What comes of a review, and what it knows by then.
type Answer = Result<(Outcome, Lookups), NotStored>;

/// Why a write was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStored {
    /// The object cannot be read or written.
    #[error("{0}")]
    Api(ApiError),
    /// Others were faster each time.
    #[error("it is changed by others all the time")]
    Overtaken,
}

/// Stores what reviews of a kind want to be stored.
pub struct Writer<T: Charged> {
    newest: Newest<T>,
    client: Client,
    served: Arc<Served>,
    jitter: Jitter,
    queues: Mutex<BTreeMap<ObjectName, Arc<Queue>>>,
}

/// The reviews that wait for one object.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Vec<Waiting>>,
    /// Held while what some of them want is stored.
    turn: TurnLock<()>,
}

/// A review that waits.
struct Waiting {
    review: Review,
    lookups: Lookups,
    reply: oneshot::Sender<Answer>,
}

/// A review that waits for a write.
struct Held<T> {
    waiting: Waiting,
    then: Then<T>,
}

/// What comes after the write.
enum Then<T> {
    /// The review is made again on the object as it leaves it.
    Review(Arc<T>),
    /// The review depends on what the reviews before it want.
    Outcome(Outcome),
    /// The review is made again on the object as the API server has it.
    Read,
}

/// What reviews come to on an object.
enum Decided<T> {
    /// All are answered.
    Answered,
    /// The object is to be read first.
    Outdated(Vec<Waiting>),
    /// The status is to be written.
    Change {
        before: Arc<T>,
        after: Arc<T>,
        held: Vec<Held<T>>,
    },
}

impl<T: Charged> Writer<T> {
    /// Without reviews yet.
    pub fn new(newest: Newest<T>, client: Client, served: Arc<Served>, jitter: Jitter) -> Self {
        Self {
            newest,
            client,
            served,
            jitter,
            queues: Mutex::default(),
        }
    }

    /// Makes a review again on the newest version of the object, and stores what it wants. The outcome is never a
    /// write to this object: that is made.
    pub async fn store(&self, name: &ObjectName, review: &Review, lookups: &Lookups) -> Answer {
        let queue = self.queue(name);
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
                    self.attend_to(name, queue.take()).await;
                    drop(turn);
                    answered.await
                }
            };
            // No answer: the review that wrote for all was cancelled. Its write may be stored.
            if let Ok(answer) = answer {
                break answer;
            }
        };
        self.drop_queue(name, queue);
        outcome
    }

    fn queue(&self, name: &ObjectName) -> Arc<Queue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(name.clone()).or_default().clone()
    }

    /// Removes the queue if no review uses it.
    fn drop_queue(&self, name: &ObjectName, queue: Arc<Queue>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        drop(queue);
        if queues
            .get(name)
            .is_some_and(|queue| Arc::strong_count(queue) == 1)
        {
            queues.remove(name);
        }
    }

    /// Answers these reviews, and stores what they want first.
    async fn attend_to(&self, name: &ObjectName, mut group: Vec<Waiting>) {
        let mut known = self.newest.known(name);
        for attempt in 1..=T::ATTEMPTS {
            let (read, is_live) = match known.take() {
                Some(read) => (Some(read), false),
                None => match self.read(name).await {
                    Ok(read) => (read, true),
                    Err(error) => return refuse(group, &NotStored::Api(error)),
                },
            };
            let (before, after, held) = match decide(name, read, is_live, group) {
                Decided::Answered => return,
                Decided::Outdated(outdated) => {
                    group = outdated;
                    continue;
                }
                Decided::Change { before, after, held } => (before, after, held),
            };
            let held = if is_injected("ChargeAfterRequest") {
                allow(held);
                sleep(Duration::from_secs(1)).await;
                Vec::new()
            } else {
                held
            };
            match self.write(name, &before, &after).await {
                Ok(stored) => {
                    if let Some(stored) = stored {
                        self.newest.note(name, &stored);
                    }
                    return answer(name, held);
                }
                Err(error) if error.is_conflict() && is_injected("LostRaceCharged") => return allow(held),
                Err(error) if error.is_conflict() || error.is_not_found() || error.may_have_happened() => {
                    group = held.into_iter().map(|one| one.waiting).collect();
                }
                Err(error) => {
                    let group = held.into_iter().map(|one| one.waiting);
                    return refuse(group, &NotStored::Api(error));
                }
            }
            let pause = (self.jitter)() % PAUSE * u64::from(attempt);
            sleep(Duration::from_millis(pause)).await;
        }
        refuse(group, &NotStored::Overtaken);
    }

    fn target(name: &ObjectName) -> Target {
        Target {
            resource: T::RESOURCE,
            namespace: name.namespace.as_str().into(),
            name: name.name.as_str().into(),
        }
    }

    /// The object as the API server has it; `None` if there is none.
    async fn read(&self, name: &ObjectName) -> Result<Option<Decoded<T>>, ApiError> {
        let path = self.served.path(&Self::target(name), Part::Main)?;
        match self.client.get::<Value>(&path).await {
            Ok(object) => {
                let read = T::read(object).map(Arc::new);
                if let Ok(object) = &read {
                    self.newest.note(name, object);
                }
                Ok(Some(read))
            }
            Err(error) if error.is_not_found() => {
                self.newest.forget(name);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Stores the status if the object is still the one that was asked. Returns the object as it is stored; `None`
    /// if the answer cannot be read.
    async fn write(&self, name: &ObjectName, before: &T, after: &T) -> Result<Option<Arc<T>>, ApiError> {
        let Some(mut patch) = before.status_patch(after) else {
            return Ok(None);
        };
        if let Some(patch) = patch.as_object_mut() {
            let metadata = before.metadata();
            let guard = if is_injected("SlotsOverwritten") {
                json!({"uid": metadata.uid})
            } else {
                json!({"uid": metadata.uid, "resourceVersion": metadata.resource_version})
            };
            patch.insert("metadata".into(), guard);
        }
        let path = self.served.path(&Self::target(name), Part::Status)?;
        let patch = self.served.status_patch(T::RESOURCE, patch)?;
        let stored: Value = self.client.patch(&path, MERGE, &patch).await?;
        Ok(T::read(stored).ok().map(Arc::new))
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

/// Makes each review on the object as the ones before leave it. Those that want something to be stored are held. So
/// are those that are allowed after one of them: what allows them may be its record, which is not stored yet. The
/// others are answered.
fn decide<T: Charged>(
    name: &ObjectName,
    read: Option<Decoded<T>>,
    is_live: bool,
    group: Vec<Waiting>,
) -> Decided<T> {
    let before = match &read {
        Some(Ok(object)) => Some(object.clone()),
        _ => None,
    };
    let mut result = read.map_or(LookupResult::NotFound, LookupResult::one::<T>);
    let mut after: Option<Arc<T>> = None;
    let mut is_outdated = false;
    let mut held = Vec::new();
    for mut waiting in group {
        // The client has given up, and nothing comes of its request.
        if waiting.reply.is_closed() {
            continue;
        }
        let lookup = Lookup::one::<T>(name.clone());
        if is_live {
            waiting.lookups.insert_live(lookup, result.clone());
        } else {
            waiting.lookups.insert(lookup, result.clone());
        }
        let outcome = (waiting.review)(&waiting.lookups);
        let change = match &outcome {
            Outcome::Write(write) if write.object() == *name => T::change(write),
            _ => Change::Nothing,
        };
        let then = match change {
            Change::Store(changed) => {
                result = LookupResult::one::<T>(Ok(changed.clone()));
                after = Some(changed.clone());
                Then::Review(changed)
            }
            Change::Read if !is_live => {
                is_outdated = true;
                Then::Read
            }
            _ if after.is_some() && waits(&outcome) => Then::Outcome(outcome),
            _ => {
                let _ = waiting.reply.send(Ok((outcome, waiting.lookups)));
                continue;
            }
        };
        held.push(Held { waiting, then });
    }
    if is_outdated {
        return Decided::Outdated(held.into_iter().map(|one| one.waiting).collect());
    }
    match before.zip(after) {
        Some((before, after)) => Decided::Change { before, after, held },
        None => Decided::Answered,
    }
}

/// May the request pass, so that what it depends on must be stored first?
fn waits(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Response(Response::Allow { .. }) | Outcome::Write(_) | Outcome::Widen(..)
    )
}

/// Answers reviews whose write is made.
fn answer<T: Charged>(name: &ObjectName, held: Vec<Held<T>>) {
    for Held { mut waiting, then } in held {
        let outcome = match then {
            Then::Review(after) => {
                let lookups = &mut waiting.lookups;
                lookups.insert_stored(Lookup::one::<T>(name.clone()), LookupResult::one::<T>(Ok(after)));
                (waiting.review)(lookups)
            }
            Then::Outcome(outcome) => outcome,
            // A group with one of these is not written.
            Then::Read => (waiting.review)(&waiting.lookups),
        };
        // The client may be gone.
        let _ = waiting.reply.send(Ok((outcome, waiting.lookups)));
    }
}

/// Lets all requests pass.
fn allow<T>(held: Vec<Held<T>>) {
    for Held { waiting, .. } in held {
        let _ = waiting.reply.send(Ok((Response::ALLOW.into(), waiting.lookups)));
    }
}

fn refuse(group: impl IntoIterator<Item = Waiting>, why: &NotStored) {
    for one in group {
        let _ = one.reply.send(Err(why.clone()));
    }
}

#[cfg(any(test, feature = "testing"))]
impl<T: Charged> Writer<T> {
    /// Is there a queue for this object?
    pub fn has_queue(&self, name: &ObjectName) -> bool {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.contains_key(name)
    }
}
