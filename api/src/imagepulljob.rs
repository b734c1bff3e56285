//! ImagePullJob: pulls one image on many nodes. ImageListPullJob shares most of its fields.
//!
//! [`ImagePullJob`] is read from raw JSON with [`ImagePullJob::from_value`] and never written back.

mod types;

use serde_json::Value;

use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::shared::{pull_policy, sandbox_config};
use crate::schema::{Object, int_or_string, label_selector, string};

pub use types::{
    CompletionPolicy, ImagePullJob, ImagePullJobSpec, ImagePullJobStatus, NodeSelector, PullPolicy,
};

/// ImagePullJob.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "ImagePullJob",
    plural: "imagepulljobs",
    short_names: &[],
    scope: Scope::Namespaced,
    about: "ImagePullJob pulls one image on many nodes, some at a time, ahead of need.",
    versions,
    conversion: Conversion::Same,
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

fn versions() -> Vec<Version> {
    let version = |name, storage, message: bool| {
        let spec = Object::new("What is pulled, on which nodes, how many at a time, and how.")
            .text(
                "image",
                "Image that is pulled, with its tag or digest; latest without both.",
            )
            .required(&["image"])
            .and(job_fields());
        let status = job_status()
            .int32("desired", "Number of nodes that the image is pulled on.")
            .int32(
                "active",
                "Number of nodes that are pulling the image now. Default: 0.",
            )
            .int32(
                "succeeded",
                "Number of nodes that have pulled the image. Default: 0.",
            )
            .int32(
                "failed",
                "Number of nodes that could not pull the image. Default: 0.",
            )
            .text("message", "Progress of the job, a sentence for people to read.")
            .texts(
                "failedNodes",
                "Names of the nodes that could not pull the image. Default: none.",
            );
        let mut columns = vec![
            columns::count("TOTAL", ".status.desired"),
            columns::count("ACTIVE", ".status.active"),
            columns::count("SUCCEED", ".status.succeeded"),
            columns::count("FAILED", ".status.failed"),
            columns::age("AGE"),
        ];
        if message {
            columns.push(columns::text("MESSAGE", ".status.message"));
        }
        Version {
            name,
            storage,
            spec: spec.into(),
            status: status.into(),
            scale: false,
            columns,
        }
    };
    vec![version("v1alpha1", false, true), version("v1beta1", true, false)]
}

/// Schema of the status members that both kinds of pull jobs have.
pub(crate) fn job_status() -> Object {
    Object::new("Progress of the job; written by the controller.")
        .time("startTime", "Time when the controller first saw the job.")
        .time("completionTime", "Time when the job was over, well or badly.")
        .required(&["desired"])
}

/// Schema of the specification that both kinds of pull jobs have: all members but the images.
pub(crate) fn job_fields() -> Object {
    let completion = Object::new("When the job is over, and what becomes of it; needed.")
        .text(
            "type",
            "Always: ends with its pulls. Never: continues, for new nodes too. Default: Always.",
        )
        .int64(
            "activeDeadlineSeconds",
            "Seconds after its start when the job is ended; Always only. Default: never.",
        )
        .int32(
            "ttlSecondsAfterFinished",
            "Seconds after its end when the job is deleted; Always only. Default: never.",
        );
    Object::new("")
        .with("completionPolicy", completion)
        .with(
            "imagePullPolicy",
            string("IfNotPresent or Always: pull what a node has, too. Default: IfNotPresent."),
        )
        .with(
            "parallelism",
            int_or_string("Number of nodes that pull at a time; 0 pauses, no percent. Default: 1."),
        )
        .with(
            "podSelector",
            label_selector(
                "Labels of pods in this namespace whose nodes pull; excludes selector. Default: none.",
            ),
        )
        .with("pullPolicy", pull_policy())
        .texts(
            "pullSecrets",
            "Names of secrets in this namespace to pull with; cannot change. Default: none.",
        )
        .with("sandboxConfig", sandbox_config())
        .with("selector", node_selector())
        .required(&["completionPolicy"])
}

/// Schema of a label selector that takes names of nodes, too.
fn node_selector() -> Value {
    let mut selector =
        label_selector("Nodes that pull: by names, or by labels of their NodeImages. Default: every node.");
    let names: Value = Object::new("")
        .texts(
            "names",
            "Names of the nodes that pull; excludes labels, no name twice. Default: none.",
        )
        .into();
    let names = names.pointer("/properties/names").cloned().unwrap_or_default();
    if let Some(properties) = selector.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert("names".to_owned(), names);
    }
    selector
}
