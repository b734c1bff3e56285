//! What the API server's record says of jobs and their activations, and what a sender may have believed of it.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use crate::engine::oracles::{Mirror, Object, ProcessId, Write};
use crate::subjects::advancedcronjob::start::CRON_JOBS;

/// What is known of the jobs of a scenario beyond what is stored.
pub struct Known {
    /// Seconds that the fastest of all clocks is ever fast.
    pub ahead: i64,
    /// Who created which job, by uid.
    pub made: BTreeMap<Arc<str>, ProcessId>,
    /// Activations whose jobs the controller itself deleted.
    pub deleted: Vec<Timestamp>,
}

impl Known {
    /// Nothing yet.
    pub fn new(ahead: i64) -> Self {
        Self {
            ahead,
            made: BTreeMap::new(),
            deleted: Vec::new(),
        }
    }
}

/// The activation that a job is for.
pub fn activation(job: &Object) -> Option<Timestamp> {
    let annotations = &job.value()["metadata"]["annotations"];
    annotations["apps.kruise.io/scheduled-at"].as_str()?.parse().ok()
}

/// `Complete` or `Failed`.
pub fn ended(job: &Object) -> Option<&'static str> {
    ["Complete", "Failed"]
        .into_iter()
        .find(|kind| job.state(kind) == "True")
}

/// What the status says was the last activation that had a job.
pub fn last(cron: &Object) -> Option<Timestamp> {
    cron.value()["status"]["lastScheduleTime"].as_str()?.parse().ok()
}

/// Versions of the object that the sender of a write may have taken for the newest.
pub fn believed<'m>(write: &Write<'_>, mirror: &'m Mirror) -> &'m [Arc<Object>] {
    let log = mirror.of(CRON_JOBS);
    let Some(cron) = log.now().next() else {
        return &[];
    };
    log.window(&cron.uid, write.sent.floors.of(CRON_JOBS))
}

/// Does a member of its specification have this value, whatever the sender believes?
pub fn surely(write: &Write<'_>, mirror: &Mirror, member: &str, value: &Value) -> bool {
    let versions = believed(write, mirror);
    !versions.is_empty() && versions.iter().all(|cron| cron.value()["spec"][member] == *value)
}
