//! Status writes, coalesced: the first goes out at once, later ones at most twice a second for each object, the last
//! value wins. A write that fails is repeated with growing delays until a newer value takes its place, because nothing
//! else may ever touch the object again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_plan_kit::{Part, StatusPatch, Target};
use serde::de::IgnoredAny;
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use crate::{Client, client::path_of};

/// Shortest time between two status writes of one object.
const INTERVAL: Duration = Duration::from_millis(500);
/// Shortest time between two urgent ones.
const URGENT_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time between two attempts.
const LONGEST: Duration = Duration::from_secs(30);
/// How long a written patch is taken to be on its way back to the cache.
const ON_ITS_WAY: Duration = Duration::from_secs(10);
/// Objects written at a time: one that hangs holds up nobody else.
const SIDE_BY_SIDE: usize = 8;

/// What is to be written when, without I/O. Times are durations since a fixed start.
#[derive(Debug, Default)]
struct Coalescer {
    objects: BTreeMap<Target, Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    /// To be written.
    patch: Option<StatusPatch>,
    /// Last written, or being written.
    written: Option<(Duration, StatusPatch)>,
    in_flight: bool,
    failures: u32,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// There is nothing left to do: it is stored, or the object is gone.
    Yes,
    /// Try again.
    No,
}

impl Coalescer {
    /// Takes a patch. The same patch as last written is dropped: its effect is on the way back to the cache.
    fn submit(&mut self, patch: StatusPatch, now: Duration) {
        let pending = self.objects.entry(patch.target.clone()).or_default();
        let repeated = pending
            .written
            .as_ref()
            .is_some_and(|(at, last)| *last == patch && now.saturating_sub(*at) <= ON_ITS_WAY);
        pending.patch = (!repeated).then_some(patch);
    }

    /// The patches due now, `most` at a time; each is in flight until it is [`Self::ended`].
    fn due(&mut self, now: Duration, most: usize) -> Vec<StatusPatch> {
        self.objects.retain(|_, pending| {
            let idle = pending
                .written
                .as_ref()
                .is_none_or(|(at, _)| now.saturating_sub(*at) > ON_ITS_WAY);
            pending.patch.is_some() || pending.in_flight || !idle
        });
        let ready = self
            .objects
            .values_mut()
            .filter(|pending| pending.due_at().is_some_and(|at| at <= now));
        let taken = ready.take(most).filter_map(|pending| {
            let patch = pending.patch.take()?;
            pending.written = Some((now, patch.clone()));
            pending.in_flight = true;
            Some(patch)
        });
        taken.collect()
    }

    /// When the next patch is due.
    fn next(&self) -> Option<Duration> {
        self.objects.values().filter_map(Pending::due_at).min()
    }

    /// A write ended. One that failed comes again, unless a newer patch waits.
    fn ended(&mut self, target: &Target, result: Written) {
        let Some(pending) = self.objects.get_mut(target) else {
            return;
        };
        pending.in_flight = false;
        if result == Written::Yes {
            pending.failures = 0;
            return;
        }
        pending.failures = pending.failures.saturating_add(1);
        let Some((at, failed)) = pending.written.take() else {
            return;
        };
        let patch = pending.patch.take().unwrap_or(failed);
        pending.patch = Some(patch.clone());
        // Remembered for its time only: no submission equals it as long as it is not stored.
        let unlike_any = StatusPatch {
            uid: String::new(),
            ..patch
        };
        pending.written = Some((at, unlike_any));
    }

    /// Drops what failed before: the process ends, and its successor reports anew.
    fn give_up(&mut self) {
        for pending in self.objects.values_mut().filter(|pending| pending.failures > 0) {
            pending.patch = None;
        }
    }
}

impl Pending {
    fn due_at(&self) -> Option<Duration> {
        let patch = self.patch.as_ref().filter(|_| !self.in_flight)?;
        let interval = if patch.urgent { URGENT_INTERVAL } else { INTERVAL };
        let interval = interval.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        Some(
            self.written
                .as_ref()
                .map_or(Duration::ZERO, |(at, _)| *at + interval),
        )
    }
}

/// Writes statuses from a task of its own, so that a slow server does not hold up pods.
#[derive(Clone)]
pub(super) struct StatusWriter {
    client: Client,
    clonesets: String,
    started: Instant,
    state: Arc<(Mutex<(Coalescer, bool)>, Notify)>,
}

impl StatusWriter {
    pub(super) fn new(client: Client, clonesets: String) -> Self {
        Self {
            client,
            clonesets,
            started: Instant::now(),
            state: Arc::default(),
        }
    }

    pub(super) fn submit(&self, patch: StatusPatch) {
        let now = self.started.elapsed();
        self.with(|(coalescer, _)| coalescer.submit(patch, now));
        self.state.1.notify_one();
    }

    /// Lets the task end once what was submitted is written.
    pub(super) fn stop(&self) {
        self.with(|(_, stopping)| *stopping = true);
        self.state.1.notify_one();
    }

    pub(super) async fn run(self) {
        let mut writes = JoinSet::new();
        loop {
            let free = SIDE_BY_SIDE - writes.len();
            let (due, next, stopping) = self.with(|(coalescer, stopping)| {
                if *stopping {
                    coalescer.give_up();
                }
                let due = coalescer.due(self.started.elapsed(), free);
                (due, coalescer.next(), *stopping)
            });
            for patch in due {
                let writer = self.clone();
                writes.spawn(async move {
                    let result = writer.write(&patch).await;
                    (patch.target, result)
                });
            }
            if writes.is_empty() && stopping && next.is_none() {
                return;
            }
            // With all places taken, the next thing to happen is that one becomes free.
            let pause = match next {
                Some(at) if writes.len() < SIDE_BY_SIDE => at.saturating_sub(self.started.elapsed()),
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

    fn settle(&self, ended: Result<(Target, Written), tokio::task::JoinError>) {
        match ended {
            Ok((target, result)) => self.with(|(coalescer, _)| coalescer.ended(&target, result)),
            Err(error) => tracing::error!(%error, "a status write ended badly"),
        }
    }

    async fn write(&self, patch: &StatusPatch) -> Written {
        let path = path_of(&patch.target, Part::Status, &self.clonesets);
        let result = self
            .client
            .patch::<IgnoredAny>(&path, "application/merge-patch+json", &patch.patch)
            .await;
        match result {
            Err(error) if !error.is_not_found() => {
                tracing::warn!(object = %patch.target, %error, "status not written");
                Written::No
            }
            _ => Written::Yes,
        }
    }

    fn with<R>(&self, change: impl FnOnce(&mut (Coalescer, bool)) -> R) -> R {
        change(&mut self.state.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kruise_plan_kit::{Resource, StatusPatch, Target};
    use serde_json::json;

    use super::{Coalescer, SIDE_BY_SIDE, Written};

    fn patch(ready: i32, urgent: bool) -> StatusPatch {
        let target = Target {
            resource: Resource::CloneSets,
            namespace: "n".into(),
            name: "web".into(),
        };
        StatusPatch {
            target,
            uid: "a".into(),
            patch: json!({"status": {"readyReplicas": ready}}),
            urgent,
        }
    }

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn due(coalescer: &mut Coalescer, at: u64) -> Vec<StatusPatch> {
        coalescer.due(ms(at), SIDE_BY_SIDE)
    }

    fn written(coalescer: &mut Coalescer, at: u64) -> Vec<StatusPatch> {
        let due = due(coalescer, at);
        for patch in &due {
            coalescer.ended(&patch.target, Written::Yes);
        }
        due
    }

    #[test]
    fn the_first_goes_at_once_and_later_ones_twice_a_second_with_the_last_value() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false), ms(0));
        assert_eq!(written(&mut coalescer, 0), [patch(1, false)]);
        coalescer.submit(patch(2, false), ms(10));
        coalescer.submit(patch(3, false), ms(20));
        assert_eq!(written(&mut coalescer, 499), []);
        assert_eq!(coalescer.next(), Some(ms(500)));
        assert_eq!(written(&mut coalescer, 500), [patch(3, false)]);
    }

    #[test]
    fn an_urgent_one_hardly_waits() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false), ms(0));
        written(&mut coalescer, 0);
        coalescer.submit(patch(2, true), ms(10));
        assert_eq!(written(&mut coalescer, 100), [patch(2, true)]);
    }

    #[test]
    fn what_was_just_written_is_not_written_again_but_a_new_object_of_the_name_is() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false), ms(0));
        written(&mut coalescer, 0);
        coalescer.submit(patch(1, false), ms(100));
        assert_eq!(written(&mut coalescer, 900), []);
        let other = StatusPatch {
            uid: "b".into(),
            ..patch(1, false)
        };
        coalescer.submit(other.clone(), ms(1000));
        assert_eq!(written(&mut coalescer, 1000), [other]);
    }

    #[test]
    fn a_patch_that_never_shows_is_written_again() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false), ms(0));
        written(&mut coalescer, 0);
        coalescer.submit(patch(1, false), ms(10_001));
        assert_eq!(written(&mut coalescer, 10_001), [patch(1, false)]);
    }

    #[test]
    fn a_failed_write_comes_again_by_itself_later_and_later() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false), ms(0));
        let (mut now, mut pauses) = (0, Vec::new());
        for _ in 0..8 {
            assert_eq!(due(&mut coalescer, now), [patch(1, false)]);
            // Submitted while it is in flight: the same thing, not a second one.
            coalescer.submit(patch(1, false), ms(now));
            assert_eq!(due(&mut coalescer, now + 1), []);
            coalescer.ended(&patch(1, false).target, Written::No);
            let next = coalescer.next().unwrap().as_millis() as u64;
            pauses.push(next - now);
            now = next;
        }
        assert_eq!(pauses, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    }

    #[test]
    fn a_newer_value_takes_the_place_of_a_failed_one() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false), ms(0));
        due(&mut coalescer, 0);
        coalescer.submit(patch(2, false), ms(10));
        coalescer.ended(&patch(1, false).target, Written::No);
        assert_eq!(written(&mut coalescer, 1000), [patch(2, false)]);
        assert_eq!(coalescer.next(), None);
    }

    #[test]
    fn what_fails_while_the_process_ends_is_given_up() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false), ms(0));
        due(&mut coalescer, 0);
        coalescer.ended(&patch(1, false).target, Written::No);
        coalescer.give_up();
        assert_eq!(coalescer.next(), None);
    }
}
