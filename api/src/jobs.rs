//! Jobs: on every node, by the clock, and inside of running pods.

use serde_json::{Value, json};

use crate::convert::{Conversion, Rule};
use crate::definition::{Kind, Scope, Version, columns};
use crate::images::image_list_spec;
use crate::names::APPS_GROUP;
use crate::schema::shared::{condition, object_reference, pod_template};
use crate::schema::{Object, anything, label_selector, one_of, string, with};

/// BroadcastJob.
pub const BROADCAST_JOB: Kind = Kind {
    group: APPS_GROUP,
    kind: "BroadcastJob",
    plural: "broadcastjobs",
    short_names: &["bcj"],
    scope: Scope::Namespaced,
    about: "BroadcastJob runs a pod of one template to its end on every node.",
    versions: broadcast_jobs,
    conversion: Conversion::Same,
};

/// AdvancedCronJob.
pub const ADVANCED_CRON_JOB: Kind = Kind {
    group: APPS_GROUP,
    kind: "AdvancedCronJob",
    plural: "advancedcronjobs",
    short_names: &["acj"],
    scope: Scope::Namespaced,
    about: "AdvancedCronJob makes Jobs, BroadcastJobs or ImageListPullJobs by a schedule.",
    versions: cron_jobs,
    conversion: Conversion::Rules(&[Rule::NewerOnly("spec.template.imageListPullJobTemplate")]),
};

/// EphemeralJob.
pub const EPHEMERAL_JOB: Kind = Kind {
    group: APPS_GROUP,
    kind: "EphemeralJob",
    plural: "ephemeraljobs",
    short_names: &["ejob"],
    scope: Scope::Namespaced,
    about: "EphemeralJob runs ephemeral containers in pods that are running already.",
    versions: ephemeral_jobs,
    conversion: Conversion::OneVersion,
};

/// Desired state of a BroadcastJob; a schedule has it as a template.
fn broadcast_spec() -> Object {
    let completion = Object::new("When the job is over, and what becomes of it. Default: Always.")
        .text(
            "type",
            "Always: ends with its pods. Never: goes on, for new nodes too. Default: Always.",
        )
        .int64(
            "activeDeadlineSeconds",
            "Seconds after its start when the job is ended; Always only. Default: never.",
        )
        .int32(
            "ttlSecondsAfterFinished",
            "Seconds after its end when the job is deleted; Always only. Default: never.",
        );
    let failure = Object::new("What happens when a pod of the job has failed. Default: FailFast.")
        .text(
            "type",
            "FailFast ends the job, Continue goes on elsewhere, Pause pauses the job. Default: FailFast.",
        )
        .int32(
            "restartLimit",
            "Number of restarts a pod may take before it has failed. Default: 0.",
        );
    Object::new("Which pods run on every node, how many at a time, and until when.")
        .with("completionPolicy", completion)
        .with("failurePolicy", failure)
        .int_or_string(
            "parallelism",
            "Most pods, or percent of nodes, that run at a time. Default: no limit.",
        )
        .flag(
            "paused",
            "Make no more pods; those that run go on. Default: false.",
        )
        .with("template", pod_template())
        .required(&["template"])
}

/// A condition with the time when it was last looked at.
fn job_condition(help: &'static str) -> Object {
    condition(help, "Complete or Failed")
        .time(
            "lastProbeTime",
            "Time when the condition was last looked at, changed or not.",
        )
        .required(&["type", "status"])
}

fn broadcast_jobs() -> Vec<Version> {
    let version = |name, storage| {
        let status = Object::new("How far the job has come; written by the controller.")
            .time("startTime", "Time when the controller first saw the job.")
            .time("completionTime", "Time when the job was over, well or badly.")
            .int32("desired", "Number of nodes that the job runs a pod on.")
            .int32(
                "active",
                "Number of pods that are running or about to. Default: 0.",
            )
            .int32("succeeded", "Number of pods that came to a good end. Default: 0.")
            .int32("failed", "Number of pods that came to a bad end. Default: 0.")
            .text("phase", "Where the job is: running, paused, completed or failed.")
            .list(
                "conditions",
                "Conditions of the job, each type at most once.",
                job_condition("One aspect of the job's state: whether it is complete, or has failed."),
            );
        Version {
            name,
            storage,
            spec: broadcast_spec().into(),
            status: status.into(),
            scale: false,
            columns: vec![
                columns::count("Desired", ".status.desired"),
                columns::count("Active", ".status.active"),
                columns::count("Succeeded", ".status.succeeded"),
                columns::count("Failed", ".status.failed"),
                columns::age("AGE"),
            ],
        }
    };
    vec![version("v1alpha1", false), version("v1beta1", true)]
}

fn cron_jobs() -> Vec<Version> {
    let version = |name, storage, template: Object| {
        let status = Object::new("What the schedule has made so far; written by the controller.")
            .list(
                "active",
                "Jobs of this schedule that have not ended. Default: none.",
                object_reference("One job of this schedule that has not ended."),
            )
            .time(
                "lastScheduleTime",
                "Time of the schedule for which a job was last made.",
            )
            .text(
                "type",
                "Kind of what is made: Job, BroadcastJob or ImageListPullJob.",
            );
        Version {
            name,
            storage,
            spec: cron_spec(template).into(),
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
            .with("spec", image_list_spec());
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
    json!({"type": "object", "description": "Labels and annotations of the jobs that are made. Default: none."})
}

fn templates() -> Object {
    Object::new("What is made each time; exactly one of the templates must be there.")
        .with(
            "jobTemplate",
            anything("Template of a Job of batch/v1, stored as written; excludes the others. Default: none."),
        )
        .with(
            "broadcastJobTemplate",
            Object::new("Template of a BroadcastJob; excludes the other templates. Default: none.")
                .with("metadata", job_metadata())
                .with("spec", broadcast_spec()),
        )
}

fn cron_spec(template: Object) -> Object {
    let policy = one_of(
        string("While a job runs: Allow another, Forbid it, or Replace the first. Default: Allow."),
        &["Allow", "Forbid", "Replace"],
    );
    let schedule = string("When jobs are made, in the five fields of cron or as @daily and the like.");
    Object::new("What is made when, and how many of the old ones are kept.")
        .with("concurrencyPolicy", policy)
        .int32(
            "failedJobsHistoryLimit",
            "Number of failed jobs that are kept. Default: 1.",
        )
        .flag(
            "paused",
            "Make no more jobs; those that run go on. Default: false.",
        )
        .with("schedule", with(schedule, "minLength", 0.into()))
        .int64(
            "startingDeadlineSeconds",
            "Seconds a job may be made late, after that not at all. Default: no limit.",
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

fn ephemeral_jobs() -> Vec<Version> {
    let template = Object::new("Containers that run in each of the pods that match.")
        .with(
            "ephemeralContainers",
            anything("Ephemeral containers that are added to each pod, stored as written."),
        )
        .required(&["ephemeralContainers"]);
    let spec = Object::new("Which containers run in which pods, how many at a time, and until when.")
        .int64(
            "activeDeadlineSeconds",
            "Seconds after its start when the job is ended. Default: never.",
        )
        .int32(
            "parallelism",
            "Most pods that get their containers at a time. Default: 1.",
        )
        .flag(
            "paused",
            "Add no more containers; those that run go on. Default: false.",
        )
        .int32(
            "replicas",
            "Most pods that get the containers at all. Default: every pod that matches.",
        )
        .with(
            "selector",
            label_selector("Labels of the pods in this namespace that get the containers."),
        )
        .with("template", template)
        .int32(
            "ttlSecondsAfterFinished",
            "Seconds after its end when the job is deleted. Default: 1800.",
        )
        .required(&["selector", "template"]);
    let status = Object::new("How far the job has come; written by the controller.")
        .time("startTime", "Time when the controller first saw the job.")
        .time("completionTime", "Time when the job was over, well or badly.")
        .int32("match", "Number of pods that match and get the containers.")
        .int32("running", "Number of pods in which the containers are running.")
        .int32("succeeded", "Number of pods in which the containers ended well.")
        .int32("failed", "Number of pods in which a container ended badly.")
        .int32(
            "waiting",
            "Number of pods in which the containers have yet to start.",
        )
        .text(
            "phase",
            "Where the job is, in one word, such as Running, Paused or Failed.",
        )
        .list(
            "conditions",
            "Conditions of the job, each type at most once.",
            job_condition("One aspect of the job's state: whether it is complete, or has failed."),
        );
    vec![Version {
        name: "v1alpha1",
        storage: true,
        spec: spec.into(),
        status: status.into(),
        scale: false,
        columns: vec![
            columns::text("STATUS", ".status.phase"),
            columns::count("MATCH", ".status.match"),
            columns::count("SUCCEED", ".status.succeeded"),
            columns::count("FAILED", ".status.failed"),
            columns::count("RUNNING", ".status.running"),
            columns::count("WAITING", ".status.waiting"),
            columns::age("AGE"),
        ],
    }]
}
