//! What jobs of one image and of many have in common.

use serde_json::Value;

use crate::schema::shared::{pull_policy, sandbox_config};
use crate::schema::{Object, int_or_string, label_selector, string};

/// Everything a pull job says but its images.
pub fn fields() -> Object {
    let completion = Object::new("When the job is over, and what becomes of it; needed.")
        .text(
            "type",
            "Always: ends with its pulls. Never: goes on, for new nodes too. Default: Always.",
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

/// A label selector that takes names of nodes besides.
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
