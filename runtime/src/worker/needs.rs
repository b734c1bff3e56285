//! Reads what a plan needs beside the caches, and plans again.

use std::time::Duration;

use futures::{StreamExt, stream};
use kruise_plan_kit::{Memory, Need, Part};
use kube_cache::ObjectKey;
use serde_json::Value;
use tokio::time::Instant;

use super::{Controller, Outcome, Reconciler};
use crate::ApiError;

/// How often one reconcile reads. A plan that still has needs after that is executed as it is.
const ROUNDS: usize = 3;

/// Reads in flight at once.
const CONCURRENCY: usize = 16;

impl<R: Reconciler> Controller<R> {
    /// The outcome of a reconcile, and the time that the last plan took. While a plan has needs, they are read, and the next
    /// plan sees them beside those read before.
    pub(super) async fn planned(
        &self,
        key: &ObjectKey,
        mut memory: Memory,
    ) -> Result<(Outcome, Duration), ApiError> {
        for _ in 0..ROUNDS {
            let (outcome, duration) = self.plan_once(key, &memory);
            match &outcome {
                Outcome::Plan(plan) if !plan.needs.is_empty() => {
                    self.read(plan.needs.clone(), &mut memory).await?;
                    self.lock().owners.entry(key.clone()).or_default().memory.unread = memory.unread.clone();
                }
                _ => return Ok((outcome, duration)),
            }
        }
        Ok(self.plan_once(key, &memory))
    }

    pub(super) fn plan_once(&self, key: &ObjectKey, memory: &Memory) -> (Outcome, Duration) {
        let started = Instant::now();
        let outcome = self.reconciler.reconcile(key, memory, self.client.now());
        (outcome, started.elapsed())
    }

    async fn read(&self, needs: Vec<Need>, memory: &mut Memory) -> Result<(), ApiError> {
        let reads = needs.into_iter().map(async |need| {
            let read = match self.settings.served.path(&need.target(), Part::Main) {
                Ok(path) => self.client.get::<Value>(&path).await,
                Err(error) => Err(error.into()),
            };
            (need, read)
        });
        let mut reads = stream::iter(reads).buffered(CONCURRENCY);
        while let Some((need, read)) = reads.next().await {
            let read = match read {
                Ok(object) => Ok(Some(object)),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) if matches!(need, Need::Content(..)) => Err(error.to_string()),
                Err(error) => return Err(error),
            };
            memory.note(need, read, self.client.now());
        }
        Ok(())
    }
}
