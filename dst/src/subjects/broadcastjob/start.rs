//! A BroadcastJob as users create it, and the nodes below it.

use crate::rules::prelude::*;
use crate::subjects::nodes::{NodeEdit, pool};

pub const NAME: &str = "broadcastjob";
pub const JOBS: Resource = Resource::kruise("broadcastjobs", "BroadcastJob");

/// A BroadcastJob when it is created, and the cluster below it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Nodes at first, three at least.
    pub nodes: u8,
    /// `parallelism`, as text; empty for none.
    pub parallelism: String,
    /// `completionPolicy.type` is `Never`.
    pub never: bool,
    /// `failurePolicy.type`.
    pub policy: String,
    /// `activeDeadlineSeconds`; 0 for none.
    pub deadline: u32,
    /// `ttlSecondsAfterFinished`; -1 for none.
    pub ttl: i32,
    /// `nodeSelector` of the template: a pool; empty for none.
    pub pool: String,
    /// `restartPolicy` is `OnFailure`, with this `restartLimit`; -1 for `Never`.
    pub restarts: i32,
}

impl Start {
    /// The job.
    pub fn job(&self) -> Value {
        let mut completion = json!({"type": if self.never { "Never" } else { "Always" }});
        if self.deadline > 0 && !self.never {
            completion["activeDeadlineSeconds"] = self.deadline.into();
        }
        if self.ttl >= 0 && !self.never {
            completion["ttlSecondsAfterFinished"] = self.ttl.into();
        }
        let mut job = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "completionPolicy": completion,
                "failurePolicy": {"type": self.policy},
                "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": {"dst/end": "succeeds"}},
                    "spec": {
                        "restartPolicy": "Never", "terminationGracePeriodSeconds": 3,
                        "containers": [{"name": "main", "image": "web:1"}],
                    },
                },
            },
        });
        if self.restarts >= 0 {
            job["spec"]["failurePolicy"]["restartLimit"] = self.restarts.into();
            job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure".into();
        }
        if !self.parallelism.is_empty() {
            job["spec"]["parallelism"] = int_or_string(&self.parallelism);
        }
        if !self.pool.is_empty() {
            job["spec"]["template"]["spec"]["nodeSelector"] = pool(&self.pool);
        }
        job
    }
}

/// A user's edit of a BroadcastJob, or of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// The job is deleted and created again as at first.
    Again,
    /// `parallelism`, as text.
    Parallelism(String),
    Paused(bool),
    /// `failurePolicy.type`.
    Policy(String),
    /// Whether new pods succeed.
    Succeeds(bool),
    /// Something happens to the node with this number.
    Node(u8, NodeEdit),
    /// Managers that start from now on are on machines whose clocks are so many seconds fast, or slow.
    Skew(i64),
}
