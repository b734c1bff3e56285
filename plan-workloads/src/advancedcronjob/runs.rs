//! The jobs that there are.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kruise_plan_kit::injected::is_injected;
use kruise_views::{JobEnd, ScheduledJobView};

use super::snapshot::Snapshot;

/// The jobs of a schedule, by name, and what they and the status say about activations.
pub(super) struct Runs<'a> {
    all: Vec<&'a ScheduledJobView>,
    /// The newest activation that the status says had a job.
    recorded: Option<Timestamp>,
    created: Option<Timestamp>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(snapshot: &Snapshot<'a>) -> Self {
        let mut all: Vec<&ScheduledJobView> = snapshot.jobs.iter().map(Arc::as_ref).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            all,
            recorded: snapshot.cron.status.last_schedule_time,
            created: snapshot.cron.metadata.creation_timestamp,
        }
    }

    /// Those that have not ended.
    pub(super) fn active(&self) -> impl Iterator<Item = &'a ScheduledJobView> {
        self.all.iter().copied().filter(|job| job.end.is_none())
    }

    /// Those that ended so and are not being deleted, oldest first.
    pub(super) fn ended(&self, end: JobEnd) -> Vec<&'a ScheduledJobView> {
        let mut ended: Vec<_> = self
            .all
            .iter()
            .copied()
            .filter(|job| job.end == Some(end) && !job.deleting)
            .collect();
        ended.sort_by_key(|job| (job.started, &*job.name));
        ended
    }

    /// The job of this uid.
    pub(super) fn find(&self, uid: &str) -> Option<&'a ScheduledJobView> {
        self.all.iter().copied().find(|job| *job.uid == *uid)
    }

    /// Names of all.
    pub(super) fn names(&self) -> BTreeSet<&'a str> {
        self.all.iter().map(|job| &*job.name).collect()
    }

    /// The newest activation that had a job, as far as is known.
    pub(super) fn last(&self) -> Option<Timestamp> {
        let of_jobs = self.all.iter().filter_map(|job| job.scheduled_at).max();
        if is_injected("ActivationForgotten") {
            return of_jobs;
        }
        of_jobs.max(self.recorded)
    }

    /// Activations after this moment are wanted.
    pub(super) fn since(&self, now: Timestamp) -> Timestamp {
        self.last().or(self.created).unwrap_or(now)
    }

    /// Does the status name its activation or a later one? Until then the job is what shows that the activation had
    /// one.
    pub(super) fn is_recorded(&self, job: &ScheduledJobView) -> bool {
        is_injected("DeletedUnrecorded") || job.scheduled_at <= self.recorded
    }
}
