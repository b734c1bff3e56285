//! What is to be collected, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::store::Place;

/// Objects that have lost all their owners, and since when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Garbage {
    pub(super) delay: Duration,
    pub(super) since: BTreeMap<Place, Timestamp>,
    /// When it was last looked for.
    pub(super) looked: Timestamp,
}

impl Garbage {
    /// Takes what there is to collect now. Returns those whose time has come.
    pub(super) fn look(&mut self, all: Vec<Place>, now: Timestamp) -> Vec<Place> {
        let since = |place: &Place| self.since.get(place).copied().unwrap_or(now);
        let all = all.into_iter().map(|place| (since(&place), place));
        self.since = all.map(|(since, place)| (place, since)).collect();
        self.looked = now;
        let ripe = self.since.iter().filter(|(_, since)| self.at(**since) <= now);
        ripe.map(|(place, _)| place.clone()).collect()
    }

    pub(super) fn at(&self, since: Timestamp) -> Timestamp {
        since.checked_add(self.delay).unwrap_or(Timestamp::MAX)
    }

    /// What was due when it was last looked for waits for something else.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let times = self.since.values().map(|since| self.at(*since));
        times.filter(|at| *at > self.looked).min()
    }
}
