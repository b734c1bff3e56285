//! The creation of a job.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::known::{Known, activation, ended, last, surely};
use crate::engine::oracles::{Mirror, Object, Violation, Write};
use crate::subjects::advancedcronjob::start::{CRON_JOBS, JOBS};

/// How far the clock of a manager may be behind what its request meets.
const LATENESS: SignedDuration = SignedDuration::from_secs(1);

impl Known {
    pub(super) fn created(&self, write: &Write<'_>, new: &Object, mirror: &Mirror) -> Option<Violation> {
        let violation = |oracle, why: String| {
            Some(Violation {
                oracle,
                what: format!("{} created {}: {why}", write.process, new.name),
            })
        };
        let Some(at) = activation(new) else {
            return violation("jobs name their activation", "it does not".to_owned());
        };
        if *new.name != format!("tick-{}", at.as_second()) {
            return violation("jobs name their activation", format!("{at}"));
        }
        let ahead = SignedDuration::from_secs(self.ahead);
        if at > write.now + ahead + LATENESS {
            return violation("no job before its time", format!("{at} is after {}", write.now));
        }
        let latest = self.latest(new, mirror);
        // A request whose sender has given up on it may arrive late. That is not the sender's fault.
        if latest.is_some_and(|latest| at <= latest) && !write.sent.is_given_up() {
            let oracle = if latest == Some(at) {
                "one job for each activation"
            } else {
                "no activation before one that had a job"
            };
            return violation(oracle, format!("{latest:?} had one"));
        }
        if surely(write, mirror, "paused", &Value::Bool(true)) {
            return violation("a paused schedule creates no jobs", "it is paused".to_owned());
        }
        for (policy, leaves_going) in [("Forbid", false), ("Replace", true)] {
            if !surely(write, mirror, "concurrencyPolicy", &json!(policy)) {
                continue;
            }
            let other = self
                .running(write, new, mirror)
                .find(|job| !(leaves_going && job.is_going()));
            if let Some(other) = other {
                return violation(
                    "jobs run as the policy allows",
                    format!("{policy}, and {} runs", other.name),
                );
            }
        }
        None
    }

    /// The latest activation of which a manager must know that it had a job.
    fn latest(&self, new: &Object, mirror: &Mirror) -> Option<Timestamp> {
        let log = mirror.of(JOBS);
        let others = log
            .now()
            .filter(|job| job.uid != new.uid && job.owner() == new.owner());
        let there = others.filter_map(|job| activation(job)).max();
        let recorded = mirror.of(CRON_JOBS).now().next().and_then(|cron| last(cron));
        let gone = self.deleted.iter().max().copied();
        there.max(recorded).max(gone)
    }

    /// Other jobs that run, as the sender must know.
    fn running<'m>(
        &'m self,
        write: &'m Write<'_>,
        new: &'m Object,
        mirror: &'m Mirror,
    ) -> impl Iterator<Item = &'m Object> {
        let floor = write.sent.floors.of(JOBS);
        let log = mirror.of(JOBS);
        log.objects.values().filter_map(move |versions| {
            let (first, now) = (versions.first()?, versions.last()?);
            let runs = !now.gone && ended(now).is_none();
            let is_known = first.version <= floor || self.made.get(&now.uid) == Some(&write.process);
            let is_other = now.uid != new.uid && now.owner() == new.owner();
            (runs && is_known && is_other).then_some(&**now)
        })
    }
}
