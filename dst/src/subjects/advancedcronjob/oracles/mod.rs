//! Oracles of AdvancedCronJobs, written from their specification.
//!
//! They follow the API server's own record of the object and its jobs. What a manager can never know is no violation: a job
//! that somebody else deleted before the status named its activation leaves no trace.

mod create;
mod end;
mod known;

use jiff::Timestamp;
use kruise_sim::Method;
use serde_json::Value;

use self::known::{Known, activation, believed, ended, last};
use super::start::{CONTROLLER, CRON_JOBS, JOBS};
use crate::engine::oracles::{Counters, Mirror, Object, Oracles, Violation, Write};

/// Least of jobs for a scenario to count.
const WRITES: u32 = 10;

/// What judges the AdvancedCronJob of a scenario.
pub struct CronOracles(Known);

impl CronOracles {
    /// For managers none of whose clocks is faster than so many seconds.
    pub fn new(ahead: i64) -> Self {
        Self(Known::new(ahead))
    }

    fn judge_write(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        match (write.method, write.resource) {
            (Method::Post, "jobs") => {
                let new = mirror.of(JOBS).changed_at(write.marks.of(JOBS))?.first()?;
                let verdict = self.0.created(write, new, mirror);
                if !write.sent.is_given_up() {
                    self.0.made.insert(new.uid.clone(), write.process);
                }
                verdict
            }
            (Method::Delete, "jobs") => {
                let versions = mirror.of(JOBS).changed_at(write.marks.of(JOBS))?;
                let before = versions.iter().rev().find(|job| !job.is_going())?;
                self.0.deleted.extend(activation(before));
                deleted(write, before, mirror)
            }
            (Method::Patch, "advancedcronjobs") => recorded(write, mirror),
            _ => None,
        }
    }
}

impl Oracles for CronOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER {
            return None;
        }
        self.judge_write(write, mirror)
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }

    fn owns(&self, pod: &Object, mirror: &Mirror) -> bool {
        mirror.of(JOBS).now().any(|job| *job.uid == *pod.owner())
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(JOBS.plural) >= WRITES
    }

    /// Jobs that run end, and some are deleted then.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<u32> {
        let running = mirror.of(JOBS).now().filter(|job| ended(job).is_none());
        Some(u32::try_from(running.count()).unwrap_or_default() * 2)
    }

    fn remembers_pods(&self) -> bool {
        false
    }
}

/// A job is deleted for the history or to be replaced, and only once the status names its activation.
fn deleted(write: &Write<'_>, job: &Object, mirror: &Mirror) -> Option<Violation> {
    let violation = |oracle, why: &str| {
        Some(Violation {
            oracle,
            what: format!("{} deleted {}: {why}", write.process, job.name),
        })
    };
    let cron = mirror.of(CRON_JOBS).now().next()?;
    if activation(job) > last(cron) {
        return violation(
            "activations are recorded before their jobs go",
            "it is not recorded",
        );
    }
    let versions = believed(write, mirror);
    let floor = write.sent.floors.of(JOBS);
    let replaces = versions
        .iter()
        .any(|cron| cron.value()["spec"]["concurrencyPolicy"] == "Replace");
    let mut seen = mirror.of(JOBS).window(&job.uid, floor).iter();
    let may_run = seen.any(|job| !job.gone && ended(job).is_none());
    if replaces && may_run {
        return None;
    }
    let Some(end) = ended(job) else {
        return violation("jobs that run stay", "it runs");
    };
    let limit = if end == "Complete" {
        "successfulJobsHistoryLimit"
    } else {
        "failedJobsHistoryLimit"
    };
    let alike = mirror.of(JOBS).objects.values().filter(|versions| {
        let was_there = versions
            .last()
            .is_some_and(|job| !job.gone || job.version > floor);
        was_there && versions.iter().any(|job| ended(job) == Some(end))
    });
    let alike = alike.count() as i64;
    let is_kept = versions.iter().all(|cron| {
        cron.value()["spec"][limit]
            .as_i64()
            .is_none_or(|limit| alike <= limit)
    });
    if is_kept {
        return violation("the history is kept", limit);
    }
    None
}

/// The status never moves back, and names only activations that had a job.
fn recorded(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let versions = mirror.of(CRON_JOBS).changed_at(write.marks.of(CRON_JOBS))?;
    let version = mirror
        .of(CRON_JOBS)
        .changes
        .get(write.marks.of(CRON_JOBS))?
        .version;
    let place = versions.iter().position(|cron| cron.version == version)?;
    let after = last(versions.get(place)?);
    let before = place.checked_sub(1).and_then(|place| last(versions.get(place)?));
    let violation = |oracle| {
        Some(Violation {
            oracle,
            what: format!("{}: {before:?}, then {after:?}", write.process),
        })
    };
    if after < before {
        return violation("the last activation never moves back");
    }
    let had_job = mirror
        .of(JOBS)
        .objects
        .values()
        .any(|versions| versions.first().and_then(|job| activation(job)) == after);
    if after != before && !had_job {
        return violation("activations are recorded when they had a job");
    }
    None
}
