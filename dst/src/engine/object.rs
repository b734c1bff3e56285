//! Objects as oracles read them. Nothing here is shared with the code under test.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// One version of an object.
#[derive(Debug)]
pub struct Object {
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// `resourceVersion`.
    pub version: u64,
    /// Was this its end?
    pub gone: bool,
    /// When it came to be so.
    pub at: Timestamp,
    /// Absent if it faded, until somebody looks at it again.
    value: OnceLock<Arc<Value>>,
    /// The line of a watch that showed it.
    line: Bytes,
    is_going: bool,
    is_active: bool,
    owner: Arc<str>,
}

impl Object {
    /// Reads what all objects have. `line` is what a watch shows of it.
    pub fn new(value: Arc<Value>, line: Bytes, gone: bool, at: Timestamp) -> Self {
        let metadata = &value["metadata"];
        let text = |name: &str| metadata[name].as_str().unwrap_or_default();
        let is_going = gone || !metadata["deletionTimestamp"].is_null();
        let has_ended = matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        Self {
            name: text("name").into(),
            uid: text("uid").into(),
            version: text("resourceVersion").parse().unwrap_or(0),
            gone,
            at,
            is_going,
            is_active: !is_going && !has_ended,
            owner: owner(metadata).into(),
            value: value.into(),
            line,
        }
    }

    /// Keeps only the text until somebody looks at it again.
    pub fn fade(&mut self) {
        self.value.take();
    }

    /// The whole.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let shown: Shown = serde_json::from_slice(&self.line).unwrap_or_default();
            Arc::new(shown.object)
        })
    }

    /// Its specification.
    pub fn spec(&self) -> &Value {
        &self.value()["spec"]
    }

    /// Its status.
    pub fn status(&self) -> &Value {
        &self.value()["status"]
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Value {
        &self.value()["metadata"]
    }

    /// Its annotations.
    pub fn annotations(&self) -> &Value {
        &self.metadata()["annotations"]
    }

    /// `metadata.generation`.
    pub fn generation(&self) -> &Value {
        &self.metadata()["generation"]
    }

    /// When it was created.
    pub fn created(&self) -> Timestamp {
        let text = self.metadata()["creationTimestamp"].as_str();
        text.and_then(|text| text.parse().ok())
            .unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The phase of a pod that has ended by itself: `Succeeded` or `Failed`.
    pub fn end(&self) -> Option<&str> {
        let phase = self.status()["phase"].as_str()?;
        matches!(phase, "Succeeded" | "Failed").then_some(phase)
    }

    /// Has its status a time of completion?
    pub fn is_completed(&self) -> bool {
        !self.status()["completionTime"].is_null()
    }

    /// What the status of a pod says of a container.
    pub fn container_status(&self, name: impl Into<Value>) -> &Value {
        let (all, name) = (&self.status()["containerStatuses"], name.into());
        let mut all = all.as_array().into_iter().flatten();
        all.find(|one| one["name"] == name).unwrap_or(&Value::Null)
    }

    /// A label, or `""`.
    pub fn label(&self, key: &str) -> &str {
        self.metadata()["labels"][key].as_str().unwrap_or_default()
    }

    /// Is there a label of this key?
    pub fn has_label(&self, key: &str) -> bool {
        !self.metadata()["labels"][key].is_null()
    }

    /// Being deleted, or gone?
    pub fn is_going(&self) -> bool {
        self.is_going
    }

    /// Uid of the controlling owner, or `""`.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// A pod that counts: neither going nor ended.
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    /// A condition of the status.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let conditions = self.value()["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == kind)
    }

    /// Status of a condition, or `""`.
    pub fn state(&self, kind: &str) -> &str {
        self.condition(kind)
            .and_then(|condition| condition["status"].as_str())
            .unwrap_or_default()
    }

    /// A pod that is active, running and ready, and in no in-place update.
    pub fn is_ready(&self) -> bool {
        self.is_active()
            && self.value()["status"]["phase"] == "Running"
            && self.state("Ready") == "True"
            && matches!(self.state("InPlaceUpdateReady"), "" | "True")
    }

    /// A pod that may take its share of the work: ready for long enough, in no phase of its lifecycle, and its
    /// containers have really started.
    pub fn is_available(&self, min_ready_seconds: i64, now: Timestamp) -> bool {
        self.seems_available(min_ready_seconds, now) && self.have_started(now)
    }

    /// Have its containers really started that are said to be ready? Until the startup probe runs, that may be said
    /// of the container before.
    pub fn have_started(&self, now: Timestamp) -> bool {
        let started =
            |probe: &Value| seconds(probe, "periodSeconds", 10).min(seconds(probe, "initialDelaySeconds", 0));
        self.have_run(started, now)
    }

    /// A pod of which nobody may believe that it is not available. Whoever doubts the report on a container that
    /// has begun anew waits for its startup probe, and three seconds for the report.
    pub fn is_certainly_available(&self, min_ready_seconds: i64, now: Timestamp) -> bool {
        let reported = |probe: &Value| seconds(probe, "periodSeconds", 10) + 4;
        self.seems_available(min_ready_seconds, now) && self.have_run(reported, now)
    }

    /// Do all containers with a startup probe that are said to be ready run for so many seconds?
    fn have_run(&self, long: impl Fn(&Value) -> i64, now: Timestamp) -> bool {
        let value = self.value();
        let containers = value["spec"]["containers"].as_array().into_iter().flatten();
        let mut probed = containers.filter(|one| one["startupProbe"].is_object());
        probed.all(|container| {
            let statuses = value["status"]["containerStatuses"].as_array();
            let status = statuses
                .into_iter()
                .flatten()
                .find(|one| one["name"] == container["name"] && one["ready"] == true);
            let began = status.and_then(|one| one["state"]["running"]["startedAt"].as_str()?.parse().ok());
            began.is_none_or(|began: Timestamp| {
                now.as_second() - began.as_second() >= long(&container["startupProbe"])
            })
        })
    }

    fn seems_available(&self, min_ready_seconds: i64, now: Timestamp) -> bool {
        let since = self
            .condition("Ready")
            .and_then(|ready| ready["lastTransitionTime"].as_str()?.parse::<Timestamp>().ok());
        let long_enough = min_ready_seconds == 0
            || since.is_some_and(|since| now.as_second() - since.as_second() >= min_ready_seconds);
        self.is_ready()
            && long_enough
            && matches!(self.label("lifecycle.apps.kruise.io/state"), "" | "Normal")
    }

    /// Names and images of the containers that are not injected.
    pub fn images(&self) -> Vec<(&str, &str)> {
        let containers = self.value()["spec"]["containers"].as_array();
        let pairs = containers.into_iter().flatten();
        pairs
            .filter(|one| !is_injected(one))
            .map(|one| {
                (
                    one["name"].as_str().unwrap_or_default(),
                    one["image"].as_str().unwrap_or_default(),
                )
            })
            .collect()
    }
}

/// A time of a probe.
fn seconds(probe: &Value, name: &str, otherwise: i64) -> i64 {
    probe[name].as_i64().unwrap_or(otherwise)
}

/// What is read of a watch's line.
#[derive(Default, Deserialize)]
struct Shown {
    object: Value,
}

/// Uid of the controlling owner, or `""`.
pub fn owner(metadata: &Value) -> &str {
    let owners = metadata["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners
        .find(|owner| owner["controller"] == true)
        .and_then(|owner| owner["uid"].as_str())
        .unwrap_or_default()
}

/// Does a container carry the mark of what a SidecarSet put into a pod?
pub fn is_injected(container: &Value) -> bool {
    let env = container["env"].as_array();
    env.into_iter().flatten().any(|one| one["name"] == "IS_INJECTED")
}
