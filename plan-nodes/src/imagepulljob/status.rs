//! What the job reports.

use jiff::Timestamp;
use kruise_api::imagepulljob::{ImagePullJob, ImagePullJobStatus};
use kruise_plan_kit::{Owner, StatusPatch, Urgency, jobs, status_patch};

use super::progress::{Progress, State};

/// What becomes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It goes on.
    Runs,
    /// It ends now: each of its nodes has pulled or failed.
    Done,
    /// It ends now: its deadline has come.
    Late,
    /// None of its nodes has a NodeImage: it waits for one.
    Waits,
    /// It ends now: it has waited long enough for a node.
    NoNode,
}

impl Course {
    /// Does it end now?
    pub(super) fn ends(self) -> bool {
        matches!(self, Self::Done | Self::Late | Self::NoNode)
    }
}

/// The status of this course.
pub(super) fn of(
    job: &ImagePullJob,
    progress: &Progress<'_>,
    course: Course,
    now: Timestamp,
) -> ImagePullJobStatus {
    let ends = course.ends();
    let mut status = ImagePullJobStatus {
        start_time: Some(job.status.start_time.unwrap_or(jobs::stored(now))),
        completion_time: ends.then_some(jobs::stored(now)),
        desired: progress.desired(),
        active: progress.count(State::Active),
        succeeded: progress.count(State::Succeeded),
        failed: progress.count(State::Failed),
        message: String::new(),
        failed_nodes: progress.names(&[State::Failed]),
    };
    if course == Course::Late {
        let unfinished = [State::Failed, State::Active, State::Waiting];
        status.failed_nodes = progress.names(&unfinished);
        status.failed = status.desired - status.succeeded;
        status.active = 0;
    }
    status.message = message(course, &status);
    status
}

fn message(course: Course, status: &ImagePullJobStatus) -> String {
    match course {
        Course::Done => "job has completed".to_owned(),
        Course::Late => "job exceeds activeDeadlineSeconds".to_owned(),
        Course::NoNode => "job has found no node".to_owned(),
        Course::Runs | Course::Waits if status.desired == 0 => "job is running, no progress".to_owned(),
        Course::Runs | Course::Waits => {
            let ended = f64::from(status.succeeded + status.failed) * 100.0;
            format!(
                "job is running, progress {:.1}%",
                ended / f64::from(status.desired)
            )
        }
    }
}

/// The write of a status, if it differs from what is stored.
pub(super) fn patch(
    job: &ImagePullJob,
    owner: &Owner<'_>,
    status: &ImagePullJobStatus,
) -> Option<StatusPatch> {
    let urgency = Urgency {
        members: &["startTime", "completionTime"],
        settled: false,
    };
    let target = owner.target(kruise_api::imagepulljob::RESOURCE, owner.name);
    let before = job.status.start_time.is_some().then_some(&job.status);
    status_patch(target, &job.metadata.resource_version, before, status, urgency)
}
