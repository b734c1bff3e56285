//! The definition.

use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::schema::Object;
use crate::schema::shared::{condition, pod_template};

/// BroadcastJob.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "BroadcastJob",
    plural: "broadcastjobs",
    short_names: &["bcj"],
    scope: Scope::Namespaced,
    about: "BroadcastJob runs a pod of one template to its end on every node.",
    versions,
    conversion: Conversion::Same,
};

/// Schema of the desired state; AdvancedCronJob has it as a template.
pub(crate) fn spec() -> Object {
    let completion = Object::new("When the job is over, and what becomes of it. Default: Always.")
        .text(
            "type",
            "Always: ends with its pods. Never: continues, for new nodes too. Default: Always.",
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
            "FailFast ends the job, Continue runs other pods, Pause pauses the job. Default: FailFast.",
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
            "Create no more pods; running pods continue. Default: false.",
        )
        .with("template", pod_template())
        .required(&["template"])
}

/// Schema of a job condition: a condition with the time of the last probe.
pub(crate) fn job_condition(help: &'static str) -> Object {
    condition(help, "Complete or Failed")
        .time(
            "lastProbeTime",
            "Time when the condition was last looked at, changed or not.",
        )
        .required(&["type", "status"])
}

fn versions() -> Vec<Version> {
    let version = |name, storage| {
        let status = Object::new("Progress of the job; written by the controller.")
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
            spec: spec().into(),
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
