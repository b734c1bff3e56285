//! What a webhook with a derived match condition is needed for, now and until a moment ago.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kruise_server::configuration::{DesiredCondition, widening::KEPT};
use tokio::time::Instant;

/// How much clocks may differ: so much later a widening has expired for everybody.
const SKEW: Duration = Duration::from_secs(2);

/// The requests that objects are for. Those of an object that is gone stay for [`KEPT`]: another one for the same
/// requests may be about to be stored, and nothing was widened for it because the condition was wide enough.
pub(super) struct Needed<R> {
    /// The condition of all of them; `None` if there are none.
    condition: fn(&BTreeSet<R>) -> Option<String>,
    /// Since when nothing needs it; `None` while something does.
    unneeded_since: BTreeMap<R, Option<Instant>>,
    /// When the last widening expires.
    widened_until: Option<Instant>,
}

impl<R: Ord + Clone> Needed<R> {
    /// Nothing is needed yet.
    pub(super) fn new(condition: fn(&BTreeSet<R>) -> Option<String>) -> Self {
        Self {
            condition,
            unneeded_since: BTreeMap::new(),
            widened_until: None,
        }
    }

    /// The condition is widened until then.
    pub(super) fn is_widened(&mut self, until: Instant) {
        self.widened_until = Some(until);
    }

    /// The desired condition if it is needed for these now, and whether the webhook controller has to look at it
    /// even if it is the same, because widenings have expired.
    pub(super) fn update(&mut self, current: BTreeSet<R>, now: Instant) -> (DesiredCondition, bool) {
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
        let is_due = self.widened_until.is_some_and(|until| until + SKEW <= now);
        if is_due {
            self.widened_until = None;
        }
        let reaches = self.unneeded_since.keys().cloned().collect();
        let desired =
            (self.condition)(&reaches).map_or(DesiredCondition::Absent, DesiredCondition::Expression);
        (desired, is_due)
    }

    /// When to update it if no set changes before.
    pub(super) fn next(&self) -> Option<Instant> {
        let expiries = self.unneeded_since.values().flatten().map(|since| *since + KEPT);
        let widened = self.widened_until.map(|until| until + SKEW);
        expiries.chain(widened).min()
    }
}
