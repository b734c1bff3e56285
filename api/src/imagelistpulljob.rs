//! ImageListPullJob: pulls several images, by one ImagePullJob for each.
//!
//! [`ImageListPullJob`] is read from raw JSON with [`ImageListPullJob::from_value`] and never written back.

mod types;

use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version, columns};
use crate::imagepulljob::{job_fields, job_status};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::Object;

pub use types::{FailedImage, ImageListPullJob, ImageListPullJobSpec, ImageListPullJobStatus};

/// ImageListPullJob.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "ImageListPullJob",
    plural: "imagelistpulljobs",
    short_names: &[],
    scope: Scope::Namespaced,
    about: "ImageListPullJob pulls several images on many nodes, by one ImagePullJob for each.",
    versions,
    conversion: Conversion::Same,
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

/// Schema of the desired state; AdvancedCronJob has it as a template.
pub(crate) fn spec() -> Object {
    Object::new("What is pulled, on which nodes, how many at a time, and how.")
        .texts(
            "images",
            "Images that are pulled, each by a job of its own, with tag or digest.",
        )
        .required(&["images"])
        .and(job_fields())
}

fn versions() -> Vec<Version> {
    let version = |name, storage| {
        let failed = Object::new("One image that some nodes could not pull.")
            .text("imagePullJob", "Name of the ImagePullJob that pulled the image.")
            .text(
                "name",
                "The image that could not be pulled everywhere, as in images.",
            )
            .text(
                "message",
                "Message for people that names the job with the failed nodes.",
            );
        let status = job_status()
            .int32("desired", "Number of images that are pulled, one job for each.")
            .int32(
                "active",
                "Number of images that some node is pulling now. Default: 0.",
            )
            .int32(
                "completed",
                "Number of images that every node has pulled or failed to. Default: 0.",
            )
            .int32(
                "succeeded",
                "Number of images that every node has pulled. Default: 0.",
            )
            .list(
                "failedImageStatuses",
                "Images that some nodes could not pull. Default: none.",
                failed,
            );
        Version {
            name,
            storage,
            spec: spec().into(),
            status: status.into(),
            scale: false,
            columns: vec![
                columns::count("TOTAL", ".status.desired"),
                columns::count("SUCCEEDED", ".status.succeeded"),
                columns::count("COMPLETED", ".status.completed"),
                columns::age("AGE"),
            ],
        }
    };
    vec![version("v1alpha1", false), version("v1beta1", true)]
}
