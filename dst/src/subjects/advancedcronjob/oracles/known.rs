//! What the API server's record says of jobs and their activations, and what a sender may have believed of it.

use super::super::start::CRON_JOBS;
use crate::rules::belief::Seen;
use crate::rules::prelude::*;

/// What is known of the jobs of a scenario beyond what is stored.
#[derive(Default)]
pub struct Known {
    /// Seconds that the fastest of all clocks is ever fast.
    pub ahead: i64,
    /// Who created which job, by uid.
    pub made: BTreeMap<Arc<str>, ProcessId>,
    /// Activations whose jobs the controller itself deleted.
    pub deleted: Vec<Timestamp>,
}

/// The activation that a job is for.
pub fn activation(job: &Object) -> Option<Timestamp> {
    time(&job.value()["metadata"]["annotations"]["apps.kruise.io/scheduled-at"])
}

/// `Complete` or `Failed`.
pub fn ended(job: &Object) -> Option<&'static str> {
    ["Complete", "Failed"]
        .into_iter()
        .find(|kind| job.state(kind) == "True")
}

/// What the status says was the last activation that had a job.
pub fn last(cron: &Object) -> Option<Timestamp> {
    time(&cron.value()["status"]["lastScheduleTime"])
}

/// The AdvancedCronJob as the sender of a write may have seen it.
pub fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror) -> Seen<'m> {
    let cron = mirror.of(CRON_JOBS).now().next();
    write.sees(mirror, CRON_JOBS, cron.map_or("", |cron| &*cron.uid))
}

/// Does a member of its specification have this value, whatever the sender believes?
pub fn surely(write: &Write<'_>, mirror: &Mirror, member: &str, value: &Value) -> bool {
    believed(write, mirror).is(|cron| cron.value()["spec"][member] == *value)
}
