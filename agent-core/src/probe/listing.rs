//! Which containers run: one listing for all probes that are due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Call, after, backoff};
use crate::{ContainerId, Effect, Life, ProbedContainer, ProbedContainers};

/// How old a listing is that still serves.
const FRESH: Duration = Duration::from_secs(1);
/// Delays before a listing that failed is tried again.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(30);

/// The listings.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    wanted: Arc<ProbedContainers>,
    /// When the containers started that run.
    starts: BTreeMap<ContainerId, Timestamp>,
    running: Option<Running>,
    /// When the last one was answered that succeeded; none if something has changed since it began. A runtime may
    /// need longer than a listing serves: by its beginning none would ever serve.
    answered: Option<Timestamp>,
    retry: Option<Timestamp>,
    failures: u32,
}

/// One that is under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    /// Has something changed since it began?
    is_outdated: bool,
}

impl Listing {
    /// The pods whose containers count.
    pub(super) fn limit_to(&mut self, pods: BTreeSet<Box<str>>) {
        if self.wanted.pods == pods {
            return;
        }
        if !pods.is_subset(&self.wanted.pods) {
            self.outdate();
        }
        Arc::make_mut(&mut self.wanted).pods = pods;
    }

    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        self.answered.is_some_and(|answered| now < after(answered, FRESH))
    }

    /// Something has changed that the last one, and one that is under way, may not show.
    pub(super) fn outdate(&mut self) {
        self.answered = None;
        if let Some(running) = &mut self.running {
            running.is_outdated = true;
        }
    }

    /// Begins one, if none is under way.
    pub(super) fn begin(&mut self, call: &mut Call<'_>) {
        if self.running.is_none() && self.retry.is_none_or(|retry| retry <= call.now) {
            self.running = Some(Running { is_outdated: false });
            call.emit(Effect::ListProbedContainers(Arc::clone(&self.wanted)));
        }
    }

    /// One has succeeded. Adds the starts that were known before.
    pub(super) fn succeeded(&mut self, containers: &mut [ProbedContainer], now: Timestamp) {
        let running = self.running.take().filter(|running| !running.is_outdated);
        self.answered = running.map(|_| now);
        self.retry = None;
        self.failures = 0;
        let mut starts = BTreeMap::new();
        for one in containers.iter_mut().filter(|one| one.life == Life::Running) {
            one.started = one.started.or_else(|| self.starts.get(&one.container).copied());
            if let Some(started) = one.started {
                starts.insert(one.container.clone(), started);
            }
        }
        if !starts.keys().eq(self.wanted.known.iter()) {
            Arc::make_mut(&mut self.wanted).known = starts.keys().cloned().collect();
        }
        self.starts = starts;
    }

    pub(super) fn failed(&mut self, problem: &str, call: &mut Call<'_>) {
        self.running = None;
        self.failures = self.failures.saturating_add(1);
        self.retry = Some(call.after(backoff(FIRST, LAST, self.failures)));
        call.info(format!("containers cannot be listed for their probes: {problem}"));
    }

    /// When the next one begins that is needed.
    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.retry.filter(|_| self.running.is_none())
    }
}
