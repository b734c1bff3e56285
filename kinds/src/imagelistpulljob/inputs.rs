//! The input of a plan of an ImageListPullJob: its jobs, read from the cache or given.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{imagelistpulljob::ImageListPullJob, imagepulljob::ImagePullJob};
use kruise_plan_kit::{Explain, Memory, Plan};
use kruise_plan_nodes::imagelistpulljob::{Snapshot, plan};

use crate::images::CachedPullJob;

/// The jobs of one ImageListPullJob.
pub struct Inputs {
    jobs: Vec<Arc<ImagePullJob>>,
}

impl Inputs {
    /// Of these jobs it keeps those that the list controls. One that cannot be read is none: the list creates
    /// another one.
    pub fn new(list: &ImageListPullJob, jobs: Vec<Arc<CachedPullJob>>) -> Self {
        let metadata = &list.metadata;
        let is_ours = |job: &ImagePullJob| {
            let owner = job.metadata.controller();
            job.metadata.namespace == metadata.namespace
                && owner.is_some_and(|owner| owner.uid == metadata.uid)
        };
        let read = jobs.iter().filter_map(|job| job.object.as_ref().ok());
        Self {
            jobs: read.filter(|job| is_ours(job)).cloned().collect(),
        }
    }

    /// Plans the ImageListPullJob.
    pub fn plan(
        &self,
        list: &ImageListPullJob,
        api_version: &str,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let snapshot = Snapshot {
            list,
            api_version,
            jobs: &self.jobs,
            memory,
            explain,
        };
        plan(&snapshot, now)
    }
}
