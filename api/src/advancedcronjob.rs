//! AdvancedCronJob: jobs that are created by a schedule.
//!
//! [`AdvancedCronJob`] is the hub version, `v1beta1`. It is read from raw JSON with [`AdvancedCronJob::from_value`]
//! and never written back: writes are patches of its status.

mod types;

use serde_json::{Value, json};

use crate::convert::{Conversion, Rule};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::shared::object_reference;
use crate::schema::{Object, anything, one_of, string, with};
use crate::{broadcastjob, imagelistpulljob};

pub use types::{
    ActiveJob, AdvancedCronJob, AdvancedCronJobSpec, AdvancedCronJobStatus, Child, Concurrency, JobTemplate,
    JobTemplates, TemplateMeta,
};

/// AdvancedCronJob.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "AdvancedCronJob",
    plural: "advancedcronjobs",
    short_names: &["acj"],
    scope: Scope::Namespaced,
    about: "AdvancedCronJob creates Jobs, BroadcastJobs or ImageListPullJobs by a schedule.",
    versions,
    conversion: Conversion::Rules(&[Rule::NewerOnly("spec.template.imageListPullJobTemplate")]),
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

fn versions() -> Vec<Version> {
    let version = |name, storage, template: Object| {
        let status = Object::new("Jobs that the schedule has created; written by the controller.")
            .list(
                "active",
                "Jobs of this schedule that have not ended. Default: none.",
                object_reference("One job of this schedule that has not ended."),
            )
            .time(
                "lastScheduleTime",
                "Time of the schedule for which a job was last created.",
            )
            .text(
                "type",
                "Kind of the created jobs: Job, BroadcastJob or ImageListPullJob.",
            );
        Version {
            name,
            storage,
            spec: spec(template).into(),
            status: status.into(),
            scale: false,
            columns: vec![
                columns::text("Schedule", ".spec.schedule"),
                columns::text("Type", ".status.type"),
                columns::since("LastScheduleTime", ".status.lastScheduleTime"),
                columns::age("AGE"),
            ],
        }
    };
    let image_list =
        Object::new("Template of an ImageListPullJob; excludes the other templates. Default: none.")
            .with("metadata", job_metadata())
            .with("spec", imagelistpulljob::spec());
    vec![
        version("v1alpha1", false, templates()),
        version(
            "v1beta1",
            true,
            templates().with("imageListPullJobTemplate", image_list),
        ),
    ]
}

fn job_metadata() -> Value {
    json!({"type": "object", "description": "Labels and annotations of the created jobs. Default: none."})
}

fn templates() -> Object {
    Object::new("Job that is created each time; exactly one template must be set.")
        .with(
            "jobTemplate",
            anything("Template of a Job of batch/v1, stored as written; excludes the others. Default: none."),
        )
        .with(
            "broadcastJobTemplate",
            Object::new("Template of a BroadcastJob; excludes the other templates. Default: none.")
                .with("metadata", job_metadata())
                .with("spec", broadcastjob::spec()),
        )
}

fn spec(template: Object) -> Object {
    let policy = one_of(
        string("While a job runs: Allow another, Forbid it, or Replace the first. Default: Allow."),
        &["Allow", "Forbid", "Replace"],
    );
    let schedule = string("When jobs are created, in the five fields of cron or as @daily and the like.");
    Object::new("Which jobs are created when, and how many old ones are kept.")
        .with("concurrencyPolicy", policy)
        .int32(
            "failedJobsHistoryLimit",
            "Number of failed jobs that are kept. Default: 1.",
        )
        .flag(
            "paused",
            "Create no more jobs; running jobs continue. Default: false.",
        )
        .with("schedule", with(schedule, "minLength", 0.into()))
        .int64(
            "startingDeadlineSeconds",
            "Seconds that a job may be late; after that it is skipped. Default: no limit.",
        )
        .int32(
            "successfulJobsHistoryLimit",
            "Number of jobs that ended well that are kept. Default: 3.",
        )
        .with("template", template)
        .text(
            "timeZone",
            "Time zone of the schedule, such as Europe/Oslo. Default: that of the manager.",
        )
        .required(&["schedule", "template"])
}
