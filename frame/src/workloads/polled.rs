//! Workloads that no cache has, read again and again while plans ask for them.

use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream};
use kruise_plan_kit::workloads::{Aspect, Known, Workload};
use tokio::{
    sync::{Mutex as TurnLock, Notify, watch},
    time::{Instant, sleep_until},
};

use super::Reader;

/// Time between two reads of a workload whose scale plans ask for.
const POLL: Duration = Duration::from_secs(5);
/// Time between two reads of one that is only an owner, or that cannot be read.
const POLL_OWNER: Duration = Duration::from_mins(1);
/// Time until a read that failed is repeated, at first.
const RETRY: Duration = Duration::from_secs(1);
/// How long a workload is kept that nothing asks for.
const KEPT: Duration = Duration::from_mins(5);
/// Reads side by side.
const CONCURRENCY: usize = 4;

/// Namespace and workload.
type Key = (String, Workload);

type Handler = Box<dyn Fn(&str) + Send + Sync>;

/// Workloads by key. Cloning shares them.
#[derive(Clone)]
pub(super) struct Polled(Arc<Inner>);

struct Inner {
    reader: Reader,
    kept: Mutex<BTreeMap<Key, Entry>>,
    handlers: Mutex<Vec<Handler>>,
    asked: Notify,
    /// Held by the task that reads: several controllers start one.
    reading: TurnLock<()>,
}

struct Entry {
    known: Known,
    aspect: Aspect,
    /// When a plan asked for it last.
    asked: Instant,
    /// When it is read next.
    due: Instant,
    failures: u32,
}

impl Polled {
    pub(super) fn new(reader: Reader) -> Self {
        Self(Arc::new(Inner {
            reader,
            kept: Mutex::default(),
            handlers: Mutex::default(),
            asked: Notify::new(),
            reading: TurnLock::default(),
        }))
    }

    pub(super) fn on_change(&self, handler: Handler) {
        let mut handlers = self.0.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.push(handler);
    }

    /// What is known of a workload, which is read from now on.
    pub(super) fn known(&self, namespace: &str, workload: &Workload, aspect: Aspect) -> Known {
        let now = Instant::now();
        let mut kept = self.kept();
        let key = (namespace.to_owned(), workload.clone());
        let mut is_new = false;
        let entry = kept.entry(key).or_insert_with(|| {
            is_new = true;
            Entry {
                known: Known::NotYet,
                aspect,
                asked: now,
                due: now,
                failures: 0,
            }
        });
        entry.asked = now;
        if aspect > entry.aspect {
            entry.aspect = aspect;
            entry.due = entry.due.min(now + POLL);
            is_new = true;
        }
        let known = entry.known.clone();
        drop(kept);
        if is_new {
            self.0.asked.notify_one();
        }
        known
    }

    /// Reads what is due until `stop` turns true. Of several such tasks, one reads at a time.
    pub(super) async fn run(&self, mut stop: watch::Receiver<bool>) {
        let _reading = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            reading = self.0.reading.lock() => reading,
        };
        loop {
            let due = self.due(Instant::now());
            let reading = stream::iter(due).for_each_concurrent(CONCURRENCY, |key| self.refresh(key));
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = reading => {}
            }
            let next = self.kept().values().map(|entry| entry.due).min();
            let due = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = due => {}
                () = self.0.asked.notified() => {}
            }
        }
    }

    /// What is due. What nothing asks for is dropped.
    fn due(&self, now: Instant) -> Vec<Key> {
        let mut kept = self.kept();
        kept.retain(|_, entry| now.duration_since(entry.asked) < KEPT);
        let due = kept.iter().filter(|(_, entry)| entry.due <= now);
        due.map(|(key, _)| key.clone()).collect()
    }

    /// Reads one, and passes its namespace to the handlers if it has changed.
    async fn refresh(&self, key: Key) {
        let (namespace, workload) = &key;
        let result = self.0.reader.read(namespace, workload, Aspect::Scale).await;
        let now = Instant::now();
        let has_changed = {
            let mut kept = self.kept();
            let Some(entry) = kept.get_mut(&key) else {
                return;
            };
            let known = match result {
                Ok(known) => {
                    entry.failures = 0;
                    let is_owner = entry.aspect == Aspect::Owner || known == Known::Unreadable;
                    entry.due = now + if is_owner { POLL_OWNER } else { POLL };
                    known
                }
                Err(error) => {
                    tracing::warn!(namespace, kind = workload.kind, name = workload.name, %error, "a workload cannot be read");
                    entry.due = now + (RETRY * (1 << entry.failures.min(6))).min(POLL_OWNER);
                    entry.failures = entry.failures.saturating_add(1);
                    // What was known stays so: one failed request must not change a budget.
                    match &entry.known {
                        Known::NotYet => Known::Unreadable,
                        known => known.clone(),
                    }
                }
            };
            let has_changed = entry.known != known;
            entry.known = known;
            has_changed
        };
        if has_changed {
            let handlers = self.0.handlers.lock().unwrap_or_else(PoisonError::into_inner);
            handlers.iter().for_each(|handler| handler(namespace));
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
