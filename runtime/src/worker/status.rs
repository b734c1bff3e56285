//! Status writes, coalesced: the first goes out at once, later ones at most twice a second for each object, the last
//! value wins.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kruise_plan_kit::{Part, StatusPatch, Target};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::sync::Notify;

use crate::{Client, client::path_of};

/// Shortest time between two status writes of one object.
const INTERVAL: Duration = Duration::from_millis(500);
/// Shortest time between two urgent ones.
const URGENT_INTERVAL: Duration = Duration::from_millis(100);

/// What is to be written when, without I/O. Times are durations since a fixed start.
#[derive(Debug, Default)]
pub(super) struct Coalescer {
    objects: BTreeMap<Target, Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    patch: Option<StatusPatch>,
    written: Option<(Duration, Value)>,
}

impl Coalescer {
    /// Takes a patch. The same patch as last written is dropped: its effect is on the way back to the cache.
    fn submit(&mut self, patch: StatusPatch) {
        let pending = self.objects.entry(patch.target.clone()).or_default();
        let repeated = pending
            .written
            .as_ref()
            .is_some_and(|(_, last)| *last == patch.patch);
        pending.patch = (!repeated).then_some(patch);
    }

    /// The patches due now.
    fn due(&mut self, now: Duration) -> Vec<StatusPatch> {
        self.objects.retain(|_, pending| {
            let idle = pending
                .written
                .as_ref()
                .is_none_or(|(at, _)| now.saturating_sub(*at) > 20 * INTERVAL);
            pending.patch.is_some() || !idle
        });
        let ready = self
            .objects
            .values_mut()
            .filter(|pending| pending.due_at().is_some_and(|at| at <= now));
        ready
            .filter_map(|pending| {
                let patch = pending.patch.take()?;
                pending.written = Some((now, patch.patch.clone()));
                Some(patch)
            })
            .collect()
    }

    /// When the next patch is due.
    fn next(&self) -> Option<Duration> {
        self.objects.values().filter_map(Pending::due_at).min()
    }

    /// A write failed: the same patch may be submitted again.
    fn failed(&mut self, target: &Target) {
        if let Some(pending) = self.objects.get_mut(target)
            && let Some((_, last)) = &mut pending.written
        {
            *last = Value::Null;
        }
    }
}

impl Pending {
    fn due_at(&self) -> Option<Duration> {
        let patch = self.patch.as_ref()?;
        let interval = if patch.urgent { URGENT_INTERVAL } else { INTERVAL };
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
        self.with(|(coalescer, _)| coalescer.submit(patch));
        self.state.1.notify_one();
    }

    /// Lets the task end once what was submitted is written.
    pub(super) fn stop(&self) {
        self.with(|(_, stopping)| *stopping = true);
        self.state.1.notify_one();
    }

    pub(super) async fn run(self) {
        loop {
            let (due, next, stopping) = self.with(|(coalescer, stopping)| {
                let due = coalescer.due(self.started.elapsed());
                (due, coalescer.next(), *stopping)
            });
            if due.is_empty() && stopping && next.is_none() {
                return;
            }
            for patch in &due {
                self.write(patch).await;
            }
            if !due.is_empty() {
                continue;
            }
            let pause = next.map_or(Duration::from_hours(1), |at| {
                at.saturating_sub(self.started.elapsed())
            });
            let _ = tokio::time::timeout(pause.max(Duration::from_millis(1)), self.state.1.notified()).await;
        }
    }

    async fn write(&self, patch: &StatusPatch) {
        let path = path_of(&patch.target, Part::Status, &self.clonesets);
        let result = self
            .client
            .patch::<IgnoredAny>(&path, "application/merge-patch+json", &patch.patch)
            .await;
        if let Err(error) = result
            && !error.is_not_found()
        {
            tracing::warn!(object = %patch.target, %error, "status not written");
            self.with(|(coalescer, _)| coalescer.failed(&patch.target));
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

    use super::Coalescer;

    fn patch(ready: i32, urgent: bool) -> StatusPatch {
        let target = Target {
            resource: Resource::CloneSets,
            namespace: "n".into(),
            name: "web".into(),
        };
        StatusPatch {
            target,
            patch: json!({"status": {"readyReplicas": ready}}),
            urgent,
        }
    }

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn the_first_goes_at_once_and_later_ones_twice_a_second_with_the_last_value() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false));
        assert_eq!(coalescer.due(ms(0)), [patch(1, false)]);
        coalescer.submit(patch(2, false));
        coalescer.submit(patch(3, false));
        assert_eq!(coalescer.due(ms(499)), []);
        assert_eq!(coalescer.next(), Some(ms(500)));
        assert_eq!(coalescer.due(ms(500)), [patch(3, false)]);
    }

    #[test]
    fn an_urgent_one_hardly_waits() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false));
        coalescer.due(ms(0));
        coalescer.submit(patch(2, true));
        assert_eq!(coalescer.due(ms(100)), [patch(2, true)]);
    }

    #[test]
    fn what_was_just_written_is_not_written_again_unless_it_failed() {
        let mut coalescer = Coalescer::default();
        coalescer.submit(patch(1, false));
        coalescer.due(ms(0));
        coalescer.submit(patch(1, false));
        assert_eq!(coalescer.due(ms(900)), []);
        coalescer.failed(&patch(1, false).target);
        coalescer.submit(patch(1, false));
        assert_eq!(coalescer.due(ms(1000)), [patch(1, false)]);
    }
}
