//! EphemeralJob: ephemeral containers in running pods.
//!
//! [`EphemeralJob`] is read from raw JSON with [`EphemeralJob::from_value`] and never written back.

mod types;

use crate::broadcastjob::job_condition;
use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::{Object, anything, label_selector};

pub use types::{EphemeralJob, EphemeralJobSpec, EphemeralJobStatus, EphemeralTemplate};

/// EphemeralJob.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "EphemeralJob",
    plural: "ephemeraljobs",
    short_names: &["ejob"],
    scope: Scope::Namespaced,
    about: "EphemeralJob runs ephemeral containers in pods that are running already.",
    versions,
    conversion: Conversion::OneVersion,
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

fn versions() -> Vec<Version> {
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
            "Add no more containers; running containers continue. Default: false.",
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
    let status = Object::new("Progress of the job; written by the controller.")
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
