//! The creation of a job.

use super::super::start::{CRON_JOBS, JOBS};
use super::known::{Known, activation, ended, last, surely};
use crate::rules::prelude::*;

/// How far the clock of a manager may be behind what its request meets.
const LATENESS: SignedDuration = SignedDuration::from_secs(1);

impl Known {
    pub(super) fn created(&self, write: &Write<'_>, new: &Object, mirror: &Mirror) -> Option<Violation> {
        const ORACLE: &str = "jobs name their activation";
        let Some(at) = activation(new) else {
            return write.breaks(ORACLE, "it does not".to_owned());
        };
        never!(write, ORACLE, *new.name != format!("tick-{}", at.as_second()) => "{at}");
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
            let other = self
                .running(write, new, mirror)
                .find(|job| holds && !(leaves_going && job.is_going()));
            never!(write, "jobs run as the policy allows", some other in other => "{policy}, and {} runs", other.name);
        }
        None
    }

    /// The latest activation of which a manager must know that it had a job.
    fn latest(&self, new: &Object, mirror: &Mirror) -> Option<Timestamp> {
        let others = mirror.of(JOBS).now();
        let others = others.filter(|job| job.uid != new.uid && job.owner() == new.owner());
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
        let jobs = mirror.of(JOBS).now();
        jobs.map(|job| &**job).filter(move |job| {
            let is_own = self.made.get(&job.uid) == Some(&write.process);
            let is_known = is_own || write.sees(mirror, JOBS, &job.uid).is_known;
            ended(job).is_none() && is_known && job.uid != new.uid && job.owner() == new.owner()
        })
    }
}
