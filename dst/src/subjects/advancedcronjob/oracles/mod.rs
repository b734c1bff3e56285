//! Oracles of AdvancedCronJobs, written from their specification.
//!
//! They follow the API server's own record of the object and its jobs. What a manager can never know is no violation: a job
//! that somebody else deleted before the status named its activation leaves no trace.

mod create;
mod end;
mod known;

use super::start::{CONTROLLER, CRON_JOBS, JOBS};
use crate::rules::prelude::*;
use known::{Known, activation, believed, ended, last};

/// Least of jobs for a scenario to count.
const WRITES: u32 = 10;

/// What judges the AdvancedCronJob of a scenario.
pub struct CronOracles(Known);

impl CronOracles {
    /// For managers none of whose clocks is faster than so many seconds.
    pub fn new(ahead: i64) -> Self {
        Self(Known {
            ahead,
            ..Known::default()
        })
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
        let is_its = write.component == CONTROLLER;
        is_its.then(|| self.judge_write(write, mirror)).flatten()
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
    let cron = mirror.of(CRON_JOBS).now().next()?;
    never!(write, "activations are recorded before their jobs go", activation(job) > last(cron) => "it is not recorded");
    let believed = believed(write, mirror);
    let replaces = believed.may_be(|cron| cron.value()["spec"]["concurrencyPolicy"] == "Replace");
    let runs = |job: &Object| !job.gone && ended(job).is_none();
    if replaces && write.sees(mirror, JOBS, &job.uid).may_be(runs) {
        return None;
    }
    let Some(end) = ended(job) else {
        return write.breaks("jobs that run stay", "it runs".to_owned());
    };
    let limit = match end {
        "Complete" => "successfulJobsHistoryLimit",
        _ => "failedJobsHistoryLimit",
    };
    let floor = write.sent.floors.of(JOBS);
    let alike = mirror.of(JOBS).objects.values().filter(|versions| {
        let was_there = versions
            .last()
            .is_some_and(|job| !job.gone || job.version > floor);
        was_there && versions.iter().any(|job| ended(job) == Some(end))
    });
    let alike = alike.count() as i64;
    let keeps = |cron: &Object| {
        cron.value()["spec"][limit]
            .as_i64()
            .is_none_or(|limit| alike <= limit)
    };
    never!(write, "the history is kept", believed.is(keeps) => "{alike}, {limit}");
    None
}

/// The status never moves back, and names only activations that had a job.
fn recorded(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let change = write.change(mirror, CRON_JOBS)?;
    let (before, after) = (change.before().and_then(last), last(change.after));
    never!(write, "the last activation never moves back", after < before => "{before:?}, then {after:?}");
    let mut jobs = mirror.of(JOBS).objects.values();
    let had_job = jobs.any(|versions| versions.first().and_then(|job| activation(job)) == after);
    never!(write, "activations are recorded when they had a job",
        after != before && !had_job => "{before:?}, then {after:?}");
    None
}
