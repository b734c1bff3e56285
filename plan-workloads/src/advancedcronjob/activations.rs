//! Which activation is due, and which one comes next.

use std::time::Duration;

use go_compat::schedule::{Due, Schedule, is_time_zone};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use kruise_api::advancedcronjob::AdvancedCronJobSpec;
use kruise_plan_kit::EventNote;

use super::events;

/// Longest time until a schedule is looked at again. Timers count the time that passes: they do not notice that the
/// clock is set, or that the machine slept.
const LOOK: Duration = Duration::from_mins(1);

/// The schedule, in the time zone that it is to follow.
pub(super) struct Times {
    schedule: Schedule,
}

/// What the clock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Activations {
    /// The latest one that has passed and had no job, if it may still start.
    pub(super) due: Option<Due>,
    /// The same, if it is too late for it.
    pub(super) missed: Option<Timestamp>,
    /// The one after it.
    pub(super) next: Option<Timestamp>,
}

impl Times {
    /// Reads the schedule. A zone in it counts before the field, and a zone that is not known leaves that of the
    /// process.
    pub(super) fn of(spec: &AdvancedCronJobSpec) -> (Result<Self, String>, Option<EventNote>) {
        let zone = spec.time_zone.as_deref().filter(|zone| !zone.is_empty());
        let zone = zone.filter(|_| !spec.schedule.contains("TZ"));
        let (text, unknown) = match zone {
            Some(zone) if is_time_zone(zone) => (format!("TZ={zone} {}", spec.schedule), None),
            Some(zone) => (spec.schedule.clone(), Some(events::unknown_zone(zone))),
            None => (spec.schedule.clone(), None),
        };
        let schedule = text.parse().map_err(|error: go_compat::Error| error.to_string());
        (schedule.map(|schedule| Self { schedule }), unknown)
    }

    /// What follows an activation: all before it have their time behind them. Those of `@every` are counted from it.
    pub(super) fn since(
        &self,
        last: Timestamp,
        deadline: Option<i64>,
        local: &TimeZone,
        now: Timestamp,
    ) -> Activations {
        let passed = self.schedule.latest(last, now, local);
        let from = passed.map_or(last, |due| due.latest);
        let next = self.schedule.next(from, local);
        let next = next.or_else(|| self.schedule.next(now.max(last), local));
        let is_late = passed.is_some_and(|due| is_late(due.latest, deadline, now));
        Activations {
            due: passed.filter(|_| !is_late),
            missed: passed.filter(|_| is_late).map(|due| due.latest),
            next,
        }
    }
}

/// Is it later than an activation may start?
fn is_late(activation: Timestamp, deadline: Option<i64>, now: Timestamp) -> bool {
    let earliest = deadline
        .map(SignedDuration::from_secs)
        .and_then(|deadline| now.checked_sub(deadline).ok());
    earliest.is_some_and(|earliest| activation <= earliest)
}

/// How long to wait until an activation, at most until the next look at the clock.
pub(super) fn wait(next: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(next.duration_since(now)).unwrap_or_default();
    left.min(LOOK)
}
