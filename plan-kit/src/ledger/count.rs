//! How many pods of a budget are available, and how many must be.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use go_compat::{IntOrString, Rounding};
use jiff::Timestamp;
use kruise_api::podunavailablebudget::{Entries, PodUnavailableBudget, PodUnavailableBudgetStatus};
use kruise_views::PodView;
use serde_json::{Map, Value, json};

use super::{
    entries::{self, DISRUPTED, UPDATED, is_of, left},
    is_available,
};
use crate::{inplace::read_state, lifecycle::State, workloads::Expected};

/// A pod as the API server had it just now; `None` if it was not there.
pub type Live = Option<Arc<PodView>>;

/// The pods that a budget covers.
#[derive(Clone, Copy)]
pub struct Covered<'a> {
    /// All of them, in any state and any order.
    pub pods: &'a [Arc<PodView>],
    /// How many there should be.
    pub expected: Expected,
    /// Are the pods at least as new as the budget? A pod that is not among them is then gone.
    pub as_new_as_budget: bool,
    /// Pods that were read from the API server, by name.
    pub live: &'a BTreeMap<String, Live>,
}

/// The outcome of a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The status of the budget.
    pub status: PodUnavailableBudgetStatus,
    /// Pods whose deletion was allowed long ago, and which are still there.
    pub not_deleted: Vec<Arc<PodView>>,
    /// Names of pods that have to be read from the API server before their entries can be dropped, because the
    /// cache may be too old to know what happened to them.
    pub unproven: Vec<String>,
    /// When the count changes by itself.
    pub again: Option<Duration>,
}

/// The number of pods that must be available of so many.
///
/// # Errors
/// In plain words, if the budget has a text that is no percentage.
pub fn desired_available(budget: &PodUnavailableBudget, expected: i32) -> Result<i32, String> {
    let part = |value: &IntOrString| {
        let part = value.scaled_a(expected, Rounding::Up);
        part.map_err(|error| error.to_string())
    };
    if let Some(most_out) = &budget.spec.max_unavailable {
        return Ok(expected.saturating_sub(part(most_out)?).max(0));
    }
    budget.spec.min_available.as_ref().map_or(Ok(0), part)
}

/// Counts the pods of a budget.
///
/// # Errors
/// As [`desired_available`].
pub fn count(budget: &PodUnavailableBudget, covered: &Covered<'_>, now: Timestamp) -> Result<Count, String> {
    let pods = Pods::of(covered);
    let total = budget.protected_total().unwrap_or(match covered.expected {
        Expected::Known(total) => total,
        Expected::Unknown => i32::try_from(pods.0.len()).unwrap_or(i32::MAX),
    });
    let desired = desired_available(budget, total)?;
    let mut kept = Kept::default();
    let disrupted = kept.of(&budget.status.disrupted_pods, DISRUPTED, covered, &pods, now);
    let updated = kept.of(&budget.status.unavailable_pods, UPDATED, covered, &pods, now);
    let has_entry = |name: &str| disrupted.get(name).is_some() || updated.get(name).is_some();
    let available = pods
        .0
        .iter()
        .filter(|(name, pod)| !has_entry(name) && is_available(pod, now));
    let current = i32::try_from(available.count()).unwrap_or(i32::MAX);
    let settling = pods
        .0
        .values()
        .filter_map(|pod| crate::availability::settling(pod, now));
    Ok(Count {
        status: PodUnavailableBudgetStatus {
            observed_generation: budget.metadata.generation,
            unavailable_allowed: current.saturating_sub(desired).max(0),
            current_available: current,
            desired_available: desired,
            total_replicas: total,
            disrupted_pods: disrupted,
            unavailable_pods: updated,
        },
        not_deleted: kept.not_deleted,
        unproven: kept.unproven,
        again: kept.again.into_iter().chain(settling).min(),
    })
}

/// The active pods by name, each as it was last seen.
struct Pods<'a>(BTreeMap<&'a str, &'a Arc<PodView>>);

impl<'a> Pods<'a> {
    fn of(covered: &Covered<'a>) -> Self {
        let newest = covered
            .pods
            .iter()
            .filter_map(|pod| match covered.live.get(&*pod.name) {
                Some(live) => live.as_ref(),
                None => Some(pod),
            });
        let active = newest.filter(|pod| pod.is_active());
        Self(active.map(|pod| (&*pod.name, pod)).collect())
    }
}

/// What becomes of the entries.
#[derive(Default)]
struct Kept {
    not_deleted: Vec<Arc<PodView>>,
    unproven: Vec<String>,
    again: Option<Duration>,
}

impl Kept {
    /// The entries that stay.
    fn of(
        &mut self,
        entries: &Entries,
        life: Duration,
        covered: &Covered<'_>,
        pods: &Pods<'_>,
        now: Timestamp,
    ) -> Entries {
        let stays = |(name, since): &(&String, &Timestamp)| {
            let left = left(**since, life, now);
            let Some(pod) = pods.0.get(name.as_str()) else {
                // Gone, or newer than the cache.
                let is_known = covered.as_new_as_budget || is_among(name, covered);
                return self.wait(left.filter(|_| !is_known));
            };
            if !is_of(pod, **since) {
                return false;
            }
            if left.is_some() {
                return self.wait(left);
            }
            if is_proven(pod, **since, life, covered, now) {
                // One that is held before its deletion is expected to take its time.
                if life == DISRUPTED && State::of(pod) != State::PreparingDelete {
                    self.not_deleted.push(Arc::clone(pod));
                }
                return false;
            }
            self.unproven.push((*name).clone());
            self.wait(entries::left(**since, life * 2, now))
        };
        let kept = entries.0.iter().filter(stays);
        Entries(kept.map(|(name, since)| (name.clone(), *since)).collect())
    }

    /// Does an entry last, and for how long?
    fn wait(&mut self, left: Option<Duration>) -> bool {
        self.again = self.again.into_iter().chain(left).min();
        left.is_some()
    }
}

/// Was the pod seen, though it is not active?
fn is_among(name: &str, covered: &Covered<'_>) -> bool {
    covered.live.contains_key(name) || covered.pods.iter().any(|pod| *pod.name == *name)
}

/// Is it certain that an entry of this pod has nothing to cover any more, now that it has expired? A cache that
/// lags behind by as much as an entry lasts would otherwise count a pod that is gone.
fn is_proven(pod: &PodView, since: Timestamp, life: Duration, covered: &Covered<'_>, now: Timestamp) -> bool {
    let is_later = |time: Timestamp| time.as_second() >= since.as_second();
    let has_changed = || {
        let ready = pod.condition("Ready").and_then(|ready| ready.since);
        let state = read_state(pod).ok().flatten();
        let updated = state.and_then(|state| state.update_timestamp?.parse().ok());
        ready.into_iter().chain(updated).any(is_later)
    };
    covered.live.contains_key(&*pod.name)
        || !is_available(pod, now)
        || (life == UPDATED && has_changed())
        || left(since, life * 2, now).is_none()
}

/// The merge patch from one status to another; `None` if they are the same. All numbers are in it: a server takes
/// no status that lacks one. Entries that are dropped are removed by name.
pub fn status_patch(
    before: &PodUnavailableBudgetStatus,
    after: &PodUnavailableBudgetStatus,
) -> Option<Value> {
    if before == after {
        return None;
    }
    let mut members = Map::new();
    members.insert("observedGeneration".into(), after.observed_generation.into());
    members.insert("unavailableAllowed".into(), after.unavailable_allowed.into());
    members.insert("currentAvailable".into(), after.current_available.into());
    members.insert("desiredAvailable".into(), after.desired_available.into());
    members.insert("totalReplicas".into(), after.total_replicas.into());
    for (name, before, after) in [
        ("disruptedPods", &before.disrupted_pods, &after.disrupted_pods),
        (
            "unavailablePods",
            &before.unavailable_pods,
            &after.unavailable_pods,
        ),
    ] {
        if before == after {
            continue;
        }
        let patch = if after.is_empty() {
            Value::Null
        } else {
            changes(before, after)
        };
        members.insert(name.into(), patch);
    }
    Some(json!({"status": members}))
}

fn changes(before: &Entries, after: &Entries) -> Value {
    let gone = before.0.keys().filter(|name| after.get(name).is_none());
    let mut changed: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    let is_new = |(name, since): &(&String, &Timestamp)| before.get(name) != Some(**since);
    let new = after.0.iter().filter(is_new);
    changed.extend(new.map(|(name, since)| (name.clone(), crate::lifecycle::go_time(*since).into())));
    changed.into()
}
