//! Reads what a plan needs beside the caches, and plans again.

use std::{collections::BTreeMap, time::Duration};

use kruise_plan_kit::{Memory, Need, Part, Target};
use kube_cache::ObjectKey;
use serde_json::Value;
use tokio::time::Instant;

use super::{Controller, Outcome, Reconciler};
use crate::ApiError;

/// How often one reconcile reads. A plan that still has needs after that is executed as it is.
const ROUNDS: usize = 3;

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
                    let read = self.read(&plan.needs).await?;
                    memory.read.extend(read);
                }
                _ => return Ok((outcome, duration)),
            }
        }
        Ok(self.plan_once(key, &memory))
    }

    fn plan_once(&self, key: &ObjectKey, memory: &Memory) -> (Outcome, Duration) {
        let started = Instant::now();
        let outcome = self.reconciler.reconcile(key, memory, self.client.now());
        (outcome, started.elapsed())
    }

    async fn read(&self, needs: &[Need]) -> Result<BTreeMap<Need, Option<Value>>, ApiError> {
        let mut read = BTreeMap::new();
        for need in needs {
            let (Need::Full(resource, namespace, name) | Need::Live(resource, namespace, name)) = need;
            let target = Target {
                resource: *resource,
                namespace: namespace.clone(),
                name: name.clone(),
            };
            let path = self.settings.served.path(&target, Part::Main)?;
            let object = match self.client.get(&path).await {
                Ok(object) => Some(object),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error),
            };
            read.insert(need.clone(), object);
        }
        Ok(read)
    }
}
