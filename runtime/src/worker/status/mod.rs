//! Coalesced status writes. The first is sent at once, later ones at most twice a second for each object, with the last
//! value. A failed write is repeated with exponential backoff until a newer value replaces it, because no other
//! event may cause a reconcile of the object. A status patch requires the version of the object that it was
//! computed from. After a conflict, the next reconcile computes a new one from the newer object.

mod coalescer;

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::FutureExt as _;
use kruise_plan_kit::{Part, Patch, StatusPatch};
use kube_cache::Version;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use crate::{ApiError, Client, Served};
use coalescer::{Coalescer, Written};

/// Largest number of parallel writes, so that a slow one does not block the others.
const CONCURRENCY: usize = 8;

/// Writes statuses in a separate task, so that slow status writes do not delay writes of pods.
pub(super) struct StatusWriter<K> {
    client: Client,
    served: Arc<Served>,
    started: Instant,
    state: Arc<State<K>>,
}

/// The pending writes, whether the writer must stop, and its wake-up.
type State<K> = (Mutex<(Coalescer<K>, bool)>, Notify);

impl<K> Clone for StatusWriter<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            served: self.served.clone(),
            started: self.started,
            state: Arc::clone(&self.state),
        }
    }
}

impl<K: Ord + Clone + Send + 'static> StatusWriter<K> {
    pub(super) fn new(client: Client, served: Arc<Served>) -> Self {
        Self {
            client,
            served,
            started: Instant::now(),
            state: Arc::default(),
        }
    }

    /// Sets the pending status patch of an owner; `None` if its status is already correct.
    pub(super) fn submit(&self, key: &K, patch: Option<StatusPatch>) {
        let now = self.started.elapsed();
        self.with(|(coalescer, _)| match patch {
            Some(patch) => coalescer.submit(key, patch, now),
            None => coalescer.withdraw(key),
        });
        self.state.1.notify_one();
    }

    /// Ends the task once the submitted statuses are written.
    pub(super) fn stop(&self) {
        self.with(|(_, stopping)| *stopping = true);
        self.state.1.notify_one();
    }

    /// Writes statuses until [`Self::stop`].
    pub(super) async fn run(self) {
        let mut writes = JoinSet::new();
        loop {
            let free = CONCURRENCY - writes.len();
            let (due, next, stopping) = self.with(|(coalescer, stopping)| {
                if *stopping {
                    coalescer.give_up();
                }
                let due = coalescer.due(self.started.elapsed(), free);
                (due, coalescer.next(), *stopping)
            });
            for (key, patch) in due {
                let writer = self.clone();
                writes.spawn(async move {
                    let write = AssertUnwindSafe(writer.write(&patch)).catch_unwind();
                    // Otherwise the object would stay in flight for ever.
                    let result = write.await.unwrap_or_else(|_| {
                        tracing::error!(namespace = patch.target.namespace, name = patch.target.name, resource = %patch.target.resource, "a status write panicked");
                        Written::No
                    });
                    (key, result)
                });
            }
            if writes.is_empty() && stopping && next.is_none() {
                return;
            }
            // At full concurrency, the next event is the end of a write.
            let pause = match next {
                Some(at) if writes.len() < CONCURRENCY => at.saturating_sub(self.started.elapsed()),
                _ => Duration::from_hours(1),
            };
            tokio::select! {
                biased;
                Some(ended) = writes.join_next() => self.settle(ended),
                () = self.state.1.notified() => {}
                () = tokio::time::sleep(pause.max(Duration::from_millis(1))) => {}
            }
        }
    }

    fn settle(&self, ended: Result<(K, Written), tokio::task::JoinError>) {
        match ended {
            Ok((key, result)) => self.with(|(coalescer, _)| coalescer.ended(&key, result)),
            Err(error) => tracing::error!(%error, "a status write task failed"),
        }
    }

    async fn write(&self, patch: &StatusPatch) -> Written {
        match self.send(patch).await {
            Ok(stored) => Written::Yes(stored.metadata.resource_version.parse::<Version>().ok()),
            Err(error) if error.is_not_found() => Written::Gone,
            Err(error) if error.is_conflict() => {
                tracing::debug!(namespace = patch.target.namespace, name = patch.target.name, resource = %patch.target.resource, %error, "status outdated");
                Written::Outdated
            }
            Err(error) => {
                tracing::warn!(namespace = patch.target.namespace, name = patch.target.name, resource = %patch.target.resource, %error, "status not written");
                Written::No
            }
        }
    }

    /// Sends the status, and what the served version has of it in annotations, for which the API server needs a
    /// request of their own. A status that has nothing else is one request.
    async fn send(&self, patch: &StatusPatch) -> Result<Stored, ApiError> {
        let resource = patch.target.resource;
        let body = self.served.status_patch(resource, guarded(patch))?;
        let Some(annotations) = self.served.annotations_patch(resource, &patch.patch)? else {
            let path = self.served.path(&patch.target, Part::Status)?;
            return self.client.patch(&path, Patch::MERGE, &body).await;
        };
        let mut version = patch.version.clone();
        let is_empty = |status: &Value| status.as_object().is_none_or(serde_json::Map::is_empty);
        if body.get("status").is_some_and(|status| !is_empty(status)) {
            let path = self.served.path(&patch.target, Part::Status)?;
            let stored: Stored = self.client.patch(&path, Patch::MERGE, &body).await?;
            version = stored.metadata.resource_version;
        }
        let path = self.served.path(&patch.target, Part::Main)?;
        let body = versioned(annotations, &version);
        self.client.patch(&path, Patch::MERGE, &body).await
    }

    fn with<R>(&self, change: impl FnOnce(&mut (Coalescer<K>, bool)) -> R) -> R {
        change(&mut self.state.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The patch with the version of the object that it was computed from, as a precondition.
fn guarded(patch: &StatusPatch) -> Value {
    versioned(patch.patch.clone(), &patch.version)
}

fn versioned(mut patch: Value, version: &str) -> Value {
    if let Value::Object(members) = &mut patch {
        let metadata = members.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("resourceVersion".into(), version.into());
        }
    }
    patch
}

#[derive(Default, Deserialize)]
struct Stored {
    #[serde(default)]
    metadata: StoredMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMeta {
    #[serde(default)]
    resource_version: String,
}

#[cfg(test)]
mod tests;
