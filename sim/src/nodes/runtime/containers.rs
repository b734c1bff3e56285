//! Containers as the runtime has them, with the labels and annotations that a kubelet writes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::object::{at, metadata_text};

/// Labels that a kubelet gives each container.
pub mod labels {
    /// Name of the pod.
    pub const POD_NAME: &str = "io.kubernetes.pod.name";
    /// Namespace of the pod.
    pub const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
    /// UID of the pod.
    pub const POD_UID: &str = "io.kubernetes.pod.uid";
    /// Name of the container in its pod.
    pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";
}

/// Where a container is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// Its process has not begun.
    Created,
    /// Its process runs.
    Running,
    /// Its process has ended.
    Exited,
}

/// A container. As on a real node the one that ended last is kept beside the one that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its id, without the name of the runtime before it.
    pub id: String,
    /// Its name in the pod. Those that ended have the name of the one that runs.
    pub name: String,
    /// How many of its name were there before it.
    pub attempt: u32,
    /// Where it is in its life.
    pub state: ContainerState,
    /// When it was created. The newest of a name is the one that counts.
    pub created: Timestamp,
    /// The reference of its image, as in the pod.
    pub image: String,
    /// Id of the image that the node has under this reference; empty if it has none.
    pub image_ref: String,
    /// See [`labels`].
    pub labels: BTreeMap<String, String>,
    /// `io.kubernetes.container.{hash,restartCount,terminationMessagePath,terminationMessagePolicy}`, and where the
    /// pod has such, `io.kubernetes.container.{preStopHandler,ports}` (JSON) and
    /// `io.kubernetes.pod.terminationGracePeriod` (seconds). The hash is hexadecimal.
    pub annotations: BTreeMap<String, String>,
}

/// A container with what a list does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerStatus {
    /// As in a list.
    pub container: Container,
    /// When its process began, if it did.
    pub started: Option<Timestamp>,
    /// When its process ended, if it did.
    pub finished: Option<Timestamp>,
    /// Of a process that has ended.
    pub exit_code: i32,
    /// Why it ended, in one word: `Completed`, `Error`.
    pub reason: String,
}

/// The labels of a container.
pub(in crate::nodes) fn labels_of(pod: &Value, name: &str) -> BTreeMap<String, String> {
    let all = [
        (labels::POD_NAME, metadata_text(pod, "name")),
        (labels::POD_NAMESPACE, metadata_text(pod, "namespace")),
        (labels::POD_UID, metadata_text(pod, "uid")),
        (labels::CONTAINER_NAME, name),
    ];
    all.into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The annotations of a container. But for the hash and the number of restarts, they are made of what does not
/// change in a pod. The deletion grace period is not among them: nothing is created once a pod is being deleted.
pub(in crate::nodes) fn annotations_of(
    pod: &Value,
    container: &Value,
    hash: u64,
    attempt: u32,
) -> BTreeMap<String, String> {
    let text = |name: &str| {
        let text = container.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut all = BTreeMap::new();
    let mut write = |name: &str, value: String| {
        all.insert(format!("io.kubernetes.{name}"), value);
    };
    write("container.hash", format!("{hash:x}"));
    write("container.restartCount", attempt.to_string());
    write("container.terminationMessagePath", text("terminationMessagePath"));
    write(
        "container.terminationMessagePolicy",
        text("terminationMessagePolicy"),
    );
    if let Some(hook) = at(container, "/lifecycle/preStop").filter(|hook| hook.is_object()) {
        write("container.preStopHandler", hook.to_string());
    }
    let ports = container.get("ports").and_then(Value::as_array);
    if let Some(ports) = ports.filter(|ports| !ports.is_empty()) {
        write("container.ports", Value::from(ports.clone()).to_string());
    }
    if let Some(seconds) = at(pod, "/spec/terminationGracePeriodSeconds").and_then(Value::as_i64) {
        write("pod.terminationGracePeriod", seconds.to_string());
    }
    all
}
