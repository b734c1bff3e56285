//! What the webhook that injects sidecars is needed for, now and until a moment ago.

use std::{collections::BTreeMap, time::Duration};

use kruise_admission::pod::sidecars::{Reach, Sets, condition};
use kruise_server::configuration::{DesiredCondition, widening::KEPT};
use tokio::time::Instant;

/// How long after a change the condition is derived again: widenings that were made for it have expired by then, even if
/// clocks differ a little.
const AGAIN: Duration = KEPT.saturating_add(Duration::from_secs(2));

/// The pods that SidecarSets are for. Those of a SidecarSet that is gone stay for [`KEPT`]: another one for the same pods
/// may be about to be stored, and nothing was widened for it because the condition was wide enough.
#[derive(Default)]
pub(super) struct Needed {
    /// Since when nothing needs it; `None` while something does.
    unneeded_since: BTreeMap<Reach, Option<Instant>>,
    /// When widenings that were made for the last change have expired.
    again: Option<Instant>,
}

impl Needed {
    /// The desired condition with these sets, and whether the webhook controller has to look at it even if it is the same.
    pub(super) fn update(&mut self, sets: &Sets, now: Instant) -> (DesiredCondition, bool) {
        let current = Reach::of_all(sets);
        let is_new = |reach: &&Reach| !matches!(self.unneeded_since.get(*reach), Some(None));
        if current.iter().any(|reach| is_new(&reach)) {
            self.again = Some(now + AGAIN);
        }
        for (reach, since) in &mut self.unneeded_since {
            if current.contains(reach) {
                *since = None;
            } else {
                since.get_or_insert(now);
            }
        }
        self.unneeded_since
            .extend(current.into_iter().map(|reach| (reach, None)));
        self.unneeded_since
            .retain(|_, since| since.is_none_or(|since| now < since + KEPT));
        let is_due = self.again.is_some_and(|again| again <= now);
        if is_due {
            self.again = None;
        }
        let reaches = self.unneeded_since.keys().cloned().collect();
        let desired = condition(&reaches).map_or(DesiredCondition::Absent, DesiredCondition::Expression);
        (desired, is_due)
    }

    /// When to update it if no set changes before.
    pub(super) fn next(&self) -> Option<Instant> {
        let expiries = self.unneeded_since.values().flatten().map(|since| *since + KEPT);
        expiries.chain(self.again).min()
    }
}
