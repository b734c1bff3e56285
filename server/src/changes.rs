//! Changes of the objects that the webhook controller reconciles, as its watches report them.
//!
//! A change is attended to at once, unless the object was repaired [`REPAIRS`] times within [`WINDOW`]: two
//! managers that disagree, for example an older and a newer one during an upgrade, must not undo each other's
//! writes without end.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use crate::configuration::Phase;

/// Time for further changes to arrive after the first one.
const SETTLE: Duration = Duration::from_millis(100);

/// Repairs of one object within [`WINDOW`]; a further change waits.
const REPAIRS: usize = 5;

/// Time after which a repair no longer counts.
const WINDOW: Duration = Duration::from_mins(1);

/// An object that the webhook controller reconciles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reconciled {
    /// The Secret of the certificates.
    Secret,
    /// The webhook configuration of this name.
    Configuration(Phase, String),
    /// The CustomResourceDefinition of this name.
    Definition(String),
}

/// Changes that are not attended to yet. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Changes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    changed: Mutex<BTreeSet<Reconciled>>,
    more: Notify,
}

impl Changes {
    /// Reports that the object was created, changed or deleted.
    pub fn report(&self, object: Reconciled) {
        self.with(|changed| changed.insert(object));
        self.0.more.notify_one();
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeSet<Reconciled>) -> T) -> T {
        change(&mut self.0.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Selects the changes to attend to.
pub(crate) struct Repairs {
    changes: Changes,
    pending: BTreeSet<Reconciled>,
    /// Objects that change their meaning at a time, without a write.
    later: BTreeMap<Reconciled, Instant>,
    /// When each object was repaired within the last [`WINDOW`].
    repaired: BTreeMap<Reconciled, VecDeque<Instant>>,
}

impl Repairs {
    pub(crate) fn of(changes: Changes) -> Self {
        Self {
            changes,
            pending: BTreeSet::new(),
            later: BTreeMap::new(),
            repaired: BTreeMap::new(),
        }
    }

    /// Waits for changes to attend to now. Cancelling it loses none.
    pub(crate) async fn due(&mut self) -> BTreeSet<Reconciled> {
        loop {
            self.collect();
            let now = Instant::now();
            let pending = self.pending.iter().map(|object| self.due_at(object, now));
            match pending.chain(self.later.values().copied()).min() {
                Some(at) if at <= now => break,
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.changes.0.more.notified() => {}
                },
                None => self.changes.0.more.notified().await,
            }
        }
        sleep(SETTLE).await;
        self.collect();
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|object| self.due_at(object, now) <= now);
        self.pending = later;
        due
    }

    /// The object is to be attended to at this time, too.
    pub(crate) fn again(&mut self, object: Reconciled, at: Instant) {
        self.later.insert(object, at);
    }

    /// Counts a repair.
    pub(crate) fn repaired(&mut self, object: Reconciled) {
        let now = Instant::now();
        let times = self.repaired.entry(object).or_default();
        times.push_back(now);
        if times.len() > REPAIRS {
            times.pop_front();
        }
    }

    fn collect(&mut self) {
        let mut reported = self.changes.with(std::mem::take);
        self.pending.append(&mut reported);
        let now = Instant::now();
        let (now, later) = std::mem::take(&mut self.later)
            .into_iter()
            .partition(|(_, at)| *at <= now);
        self.later = later;
        let now: BTreeMap<Reconciled, Instant> = now;
        self.pending.extend(now.into_keys());
    }

    fn due_at(&self, object: &Reconciled, now: Instant) -> Instant {
        match self.repaired.get(object) {
            Some(times) if times.len() >= REPAIRS => times.front().map_or(now, |first| *first + WINDOW),
            _ => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str) -> Reconciled {
        Reconciled::Definition(name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn changes_at_the_same_time_are_attended_to_together_and_once() {
        let changes = Changes::default();
        let mut repairs = Repairs::of(changes.clone());
        changes.report(definition("a"));
        changes.report(definition("b"));
        changes.report(definition("a"));
        assert_eq!(repairs.due().await, [definition("a"), definition("b")].into());
        let nothing = tokio::time::timeout(WINDOW, repairs.due()).await;
        assert!(nothing.is_err(), "{nothing:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_attended_to_again_when_its_time_comes() {
        let mut repairs = Repairs::of(Changes::default());
        let at = Instant::now() + WINDOW;
        repairs.again(definition("a"), at);
        repairs.again(definition("b"), at + WINDOW);
        assert_eq!(repairs.due().await, [definition("a")].into());
        assert_eq!(at.elapsed(), SETTLE);
        assert_eq!(repairs.due().await, [definition("b")].into());
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_is_repaired_too_often_waits_and_others_do_not() {
        let changes = Changes::default();
        let mut repairs = Repairs::of(changes.clone());
        let begin = Instant::now();
        for _ in 0..REPAIRS {
            changes.report(definition("disputed"));
            repairs.due().await;
            repairs.repaired(definition("disputed"));
        }
        assert!(begin.elapsed() < Duration::from_secs(2));
        changes.report(definition("disputed"));
        changes.report(definition("other"));
        assert_eq!(repairs.due().await, [definition("other")].into());
        assert!(begin.elapsed() < Duration::from_secs(2));
        assert_eq!(repairs.due().await, [definition("disputed")].into());
        assert!(begin.elapsed() >= WINDOW);
    }
}
