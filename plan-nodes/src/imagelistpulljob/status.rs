//! What the list reports.

use jiff::Timestamp;
use kruise_api::{
    imagelistpulljob::{FailedImage, ImageListPullJob, ImageListPullJobStatus},
    imagepulljob::ImagePullJob,
};
use kruise_plan_kit::{Owner, StatusPatch, Urgency, jobs, status_patch};

/// Has every node of the job pulled, or failed to? One that has found no node yet waits for one.
pub(super) fn is_completed(job: &ImagePullJob) -> bool {
    let status = &job.status;
    let has_nodes = status.desired > 0 || status.completion_time.is_some();
    status.start_time.is_some() && has_nodes && status.desired == status.succeeded + status.failed
}

/// The status with these jobs, one for each image.
pub(super) fn of(list: &ImageListPullJob, jobs: &[&ImagePullJob], now: Timestamp) -> ImageListPullJobStatus {
    let count = |counts: &dyn Fn(&ImagePullJob) -> bool| {
        let count = jobs.iter().filter(|job| counts(job)).count();
        i32::try_from(count).unwrap_or(i32::MAX)
    };
    let failed = jobs.iter().filter(|job| job.status.failed > 0);
    let mut failed: Vec<FailedImage> = failed.map(|job| failed_image(job)).collect();
    failed.sort_by(|one, other| (&one.name, &one.image_pull_job).cmp(&(&other.name, &other.image_pull_job)));
    let status = ImageListPullJobStatus {
        start_time: Some(list.status.start_time.unwrap_or(jobs::stored(now))),
        completion_time: None,
        desired: i32::try_from(list.spec.images.len()).unwrap_or(i32::MAX),
        active: count(&|job| job.status.active > 0),
        completed: count(&is_completed),
        succeeded: count(&|job| is_completed(job) && job.status.failed == 0),
        failed_image_statuses: failed,
    };
    let ends = !list.spec.completion_policy.is_never() && status.completed == status.desired;
    ImageListPullJobStatus {
        completion_time: ends.then_some(jobs::stored(now)),
        ..status
    }
}

fn failed_image(job: &ImagePullJob) -> FailedImage {
    let name = &job.metadata.name;
    FailedImage {
        image_pull_job: name.clone(),
        name: job.spec.image.clone(),
        message: format!("Please check for details which nodes failed by 'kubectl get ImagePullJob {name}'."),
    }
}

/// The write of a status, if it differs from what is stored.
pub(super) fn patch(
    list: &ImageListPullJob,
    owner: &Owner<'_>,
    status: &ImageListPullJobStatus,
) -> Option<StatusPatch> {
    let urgency = Urgency {
        members: &["startTime", "completionTime"],
        settled: false,
    };
    let target = owner.target(kruise_api::imagelistpulljob::RESOURCE, owner.name);
    let before = list.status.start_time.is_some().then_some(&list.status);
    status_patch(target, &list.metadata.resource_version, before, status, urgency)
}
