//! Oracles of AdvancedCronJobs, written from their specification.
//!
//! They follow the API server's own record of the object and its jobs. What a manager can never know is no
//! violation: a job that somebody else deleted before the status named its activation leaves no trace.

use super::start::CRON_JOBS;
use crate::rules::belief::Seen;
use crate::rules::prelude::*;

/// How far the clock of a manager may be behind what its request meets.
const LATENESS: SignedDuration = SignedDuration::from_secs(1);

/// What judges the AdvancedCronJob of a scenario, and what is known of its jobs beyond what is stored.
#[derive(Default)]
pub struct CronOracles {
    /// Seconds that the fastest of all clocks is ever fast.
    ahead: i64,
    /// Who created which job, by uid.
    made: BTreeMap<Arc<str>, ProcessId>,
    /// Activations whose jobs the controller itself deleted.
    deleted: Vec<Timestamp>,
}

impl Oracles for CronOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if let Some(new) = write.created(mirror, JOBS) {
            let verdict = self.created(write, new, mirror);
            if !write.sent.is_given_up() {
                self.made.insert(new.uid.clone(), write.process);
            }
            return verdict;
        }
        if let Some(before) = write.deleted(mirror, JOBS) {
            self.deleted.extend(activation(before));
            return deleted(write, before, mirror);
        }
        recorded(write, mirror)
    }

    /// What an AdvancedCronJob must be once it is paused and all is calm.
    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        let cron = mirror.only(CRON_JOBS).ok_or("there is no AdvancedCronJob")?;
        let (spec, status) = (cron.spec(), cron.status());
        expect("it is paused", spec["paused"].as_bool(), Some(true))?;
        let own = || mirror.owned(JOBS, cron);
        wrong!(some job in own().find(|job| ended(job).is_none()) => "{} has not ended", job.name);
        expect("jobs in status.active", list(&status["active"]).len(), 0)?;
        expect("status.type", status["type"].as_str(), Some("Job"))?;
        for end in ["Complete", "Failed"] {
            let limit = spec[history(end)].as_i64().unwrap_or(i64::MAX);
            let kept = own().filter(|job| ended(job) == Some(end)).count() as i64;
            wrong!(kept > limit => "{kept} jobs {end}, and {limit} are to be kept");
        }
        let newest = own().filter_map(|job| activation(job)).max();
        wrong!(newest > last(cron) => "{newest:?} had a job and is not recorded");
        Ok(())
    }

    /// Jobs that run end, and some are deleted then.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<usize> {
        let running = mirror.of(JOBS).now().filter(|job| ended(job).is_none());
        Some(running.count() * 2)
    }
}

impl CronOracles {
    /// For managers none of whose clocks is faster than so many seconds.
    pub fn new(ahead: i64) -> Self {
        Self {
            ahead,
            ..Self::default()
        }
    }

    fn created(&self, write: &Write<'_>, new: &Object, mirror: &Mirror) -> Option<Violation> {
        let name = activation(new).map(|at| format!("tick-{}", at.as_second()));
        never!(write, "jobs name their activation", name.as_deref() != Some(&new.name) => "{name:?}");
        let at = activation(new)?;
        let ahead = SignedDuration::from_secs(self.ahead);
        never!(write, "no job before its time", at > write.now + ahead + LATENESS => "{at} is after {}", write.now);
        // A request whose sender has given up on it may arrive late. That is not the sender's fault.
        let latest = self.latest(new, mirror).filter(|_| !write.sent.is_given_up());
        never!(write, "one job for each activation", latest == Some(at) => "{at} had one");
        never!(write, "no activation before one that had a job",
            some latest in latest.filter(|latest| at < *latest) => "{latest} had one");
        never!(write, "a paused schedule creates no jobs",
            surely(write, mirror, "paused", &Value::Bool(true)) => "it is paused");
        for (policy, leaves_going) in [("Forbid", false), ("Replace", true)] {
            let holds = surely(write, mirror, "concurrencyPolicy", &json!(policy));
            let mut running = self.running(write, new, mirror);
            let other = running.find(|job| holds && !(leaves_going && job.is_going()));
            never!(write, "jobs run as the policy allows", some other in other => "{policy}, and {} runs", other.name);
        }
        None
    }

    /// The latest activation of which a manager must know that it had a job.
    fn latest(&self, new: &Object, mirror: &Mirror) -> Option<Timestamp> {
        let others = mirror.of(JOBS).now();
        let others = others.filter(|job| job.uid != new.uid && job.owner() == new.owner());
        let there = others.filter_map(|job| activation(job)).max();
        let recorded = mirror.only(CRON_JOBS).and_then(|cron| last(cron));
        there.max(recorded).max(self.deleted.iter().max().copied())
    }

    /// Other jobs that run, as the sender must know.
    fn running<'m>(
        &'m self,
        write: &'m Write<'_>,
        new: &'m Object,
        mirror: &'m Mirror,
    ) -> impl Iterator<Item = &'m Arc<Object>> {
        mirror.of(JOBS).now().filter(move |job| {
            let is_own = self.made.get(&job.uid) == Some(&write.process);
            let is_known = is_own || write.sees(mirror, JOBS, &job.uid).is_known;
            ended(job).is_none() && is_known && job.uid != new.uid && job.owner() == new.owner()
        })
    }
}

/// The activation that a job is for.
fn activation(job: &Object) -> Option<Timestamp> {
    time(&job.annotations()["apps.kruise.io/scheduled-at"])
}

/// `Complete` or `Failed`.
fn ended(job: &Object) -> Option<&'static str> {
    let mut ends = ["Complete", "Failed"].into_iter();
    ends.find(|end| job.state(end) == "True")
}

/// The member of a specification that says how many jobs with this end are kept.
fn history(end: &str) -> &'static str {
    match end {
        "Complete" => "successfulJobsHistoryLimit",
        _ => "failedJobsHistoryLimit",
    }
}

/// What the status says was the last activation that had a job.
fn last(cron: &Object) -> Option<Timestamp> {
    time(&cron.status()["lastScheduleTime"])
}

/// The AdvancedCronJob as the sender of a write may have seen it.
fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror) -> Seen<'m> {
    let cron = mirror.only(CRON_JOBS);
    write.sees(mirror, CRON_JOBS, cron.map_or("", |cron| &*cron.uid))
}

/// Does a member of its specification have this value, whatever the sender believes?
fn surely(write: &Write<'_>, mirror: &Mirror, member: &str, value: &Value) -> bool {
    believed(write, mirror).is(|cron| cron.spec()[member] == *value)
}

/// A job is deleted for the history or to be replaced, and only once the status names its activation.
fn deleted(write: &Write<'_>, job: &Object, mirror: &Mirror) -> Option<Violation> {
    let cron = mirror.only(CRON_JOBS)?;
    never!(write, "activations are recorded before their jobs go", activation(job) > last(cron) => "it is not recorded");
    let believed = believed(write, mirror);
    let replaces = believed.may_be(|cron| cron.spec()["concurrencyPolicy"] == "Replace");
    let runs = |job: &Object| !job.gone && ended(job).is_none();
    if replaces && write.sees(mirror, JOBS, &job.uid).may_be(runs) {
        return None;
    }
    never!(write, "jobs that run stay", ended(job).is_none() => "it runs");
    let end = ended(job)?;
    let floor = write.sent.floors.of(JOBS);
    let was_there = |job: &Arc<Object>| !job.gone || job.version > floor;
    let alike = mirror.of(JOBS).objects.values().filter(|versions| {
        versions.last().is_some_and(was_there) && versions.iter().any(|job| ended(job) == Some(end))
    });
    let alike = alike.count() as i64;
    let keeps = |cron: &Object| {
        cron.spec()[history(end)]
            .as_i64()
            .is_none_or(|limit| alike <= limit)
    };
    never!(write, "the history is kept", believed.is(keeps) => "{alike}, {end}");
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
