//! Reads what a plan needs beside the caches, and plans again.

use std::time::Duration;

use futures::{StreamExt, stream};
use kruise_plan_kit::{
    Memory, Need, Part, ResourceId, Target,
    trial::{Answer, PodTrial, Trials},
};
use kube_cache::ObjectKey;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{Controller, Outcome};
use crate::ApiError;

/// How often one reconcile reads. A plan that still has needs after that is executed as it is.
const ROUNDS: usize = 3;

/// Reads in flight at once.
const CONCURRENCY: usize = 16;

/// Time limit of a trial.
const TRIAL: Duration = Duration::from_secs(5);

impl Controller {
    /// The outcome of a reconcile, and the time that the last plan took. While a plan has needs, they are read, and
    /// the next plan sees them beside those read before. What came of trials is kept for later reconciles.
    pub(super) async fn planned(
        &self,
        key: &ObjectKey,
        mut memory: Memory,
    ) -> Result<(Outcome, Duration), ApiError> {
        // Nothing is sent that looks like a write for somebody who only wants to know what would be done.
        memory.trials.are_made = self.settings.dry_run.is_none();
        for _ in 0..ROUNDS {
            let (outcome, duration) = self.plan_once(key, &memory);
            match &outcome {
                Outcome::Plan(plan) if !plan.needs.is_empty() => {
                    let (trials, reads): (Vec<Need>, Vec<Need>) =
                        plan.needs.iter().cloned().partition(is_trial);
                    self.read(reads, &mut memory).await?;
                    if !trials.is_empty() {
                        self.try_pods(trials, &mut memory.trials).await;
                    }
                    self.remember(key, &memory);
                }
                _ => return Ok((outcome, duration)),
            }
        }
        Ok(self.plan_once(key, &memory))
    }

    /// Asks the server about pods, one after the other: there are one or two.
    async fn try_pods(&self, needs: Vec<Need>, trials: &mut Trials) {
        for need in needs {
            if let Need::Trial(trial) = need {
                let answer = self.try_pod(&trial).await;
                trials.note(&trial, answer, self.client.now());
            }
        }
    }

    async fn try_pod(&self, trial: &PodTrial) -> Answer {
        let pods = Target {
            resource: ResourceId::PODS,
            namespace: trial.namespace.clone(),
            name: String::new(),
        };
        let Ok(path) = self.settings.served.path(&pods, Part::Main) else {
            return Answer::Unclear;
        };
        let pod: Value = serde_json::from_str(&trial.pod).unwrap_or_default();
        match timeout(TRIAL, self.client.would_create(&path, &pod)).await {
            Ok(Ok(())) => Answer::Accepted,
            Ok(Err(error)) => answer(&error),
            Err(_) => Answer::Unclear,
        }
    }

    /// Keeps what came of reads and trials for later reconciles.
    fn remember(&self, key: &ObjectKey, memory: &Memory) {
        let mut inner = self.lock();
        let kept = &mut inner.owners.entry(key.clone()).or_default().memory;
        kept.unread.clone_from(&memory.unread);
        kept.trials.clone_from(&memory.trials);
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

fn is_trial(need: &Need) -> bool {
    matches!(need, Need::Trial(_))
}

/// What an error says about a pod.
fn answer(error: &ApiError) -> Answer {
    match error.status() {
        Some(status) if (400..500).contains(&status.code) && status.code != 429 => Answer::Refused {
            code: status.code,
            message: without_name(&status.message, &status.details.name),
        },
        _ => Answer::Unclear,
    }
}

/// A message without the generated end of a name: it would be another one each time.
fn without_name(message: &str, name: &str) -> String {
    match name.rsplit_once('-') {
        Some((stem, _)) => message.replace(name, &format!("{stem}-*")),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_the_same_whatever_name_was_generated() {
        let said = |code: u16, name: &str| {
            let message = format!("Pod {name:?} is invalid: spec.dnsPolicy");
            let body = serde_json::json!({"message": message, "details": {"name": name}});
            answer(&ApiError::refused(code, body.to_string().as_bytes(), None))
        };
        let message = "Pod \"web-*\" is invalid: spec.dnsPolicy".to_owned();
        assert_eq!(said(422, "web-abcde"), Answer::Refused { code: 422, message });
        assert_eq!(said(422, "web-abcde"), said(422, "web-fghij"));
        for code in [429, 500, 503] {
            assert_eq!(said(code, "web-abcde"), Answer::Unclear, "{code}");
        }
        assert_eq!(answer(&ApiError::Timeout(TRIAL)), Answer::Unclear);
    }
}
