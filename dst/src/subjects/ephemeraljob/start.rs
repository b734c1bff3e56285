//! An EphemeralJob as users create it, and the pods that it selects.

use crate::rules::prelude::*;

pub const NAME: &str = "ephemeraljob";
pub const JOBS: Resource = Resource::kruise("ephemeraljobs", "EphemeralJob").older();
/// Time to live of a job that stays.
const STAYS: u32 = 10_000_000;

/// An EphemeralJob when it is created, and the pods that there are then.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Pods at first.
    pub pods: u8,
    pub replicas: Option<u8>,
    pub parallelism: u8,
    /// How long the containers run.
    pub seconds: u32,
    /// `activeDeadlineSeconds`.
    pub deadline: Option<u32>,
    /// `ttlSecondsAfterFinished`; without it the job stays longer than the scenario lasts.
    pub ttl: Option<u32>,
    /// It has the finalizer that OpenKruise sets.
    pub held: bool,
}

impl Start {
    /// The job that is the `number`-th of its name. Each has a name of its own for its container, which stays in
    /// the pods.
    pub fn job(&self, number: usize) -> Value {
        let mut spec = json!({
            "selector": {"matchLabels": {"app": "cart"}}, "parallelism": self.parallelism,
            "ttlSecondsAfterFinished": self.ttl.unwrap_or(STAYS),
            "template": {"ephemeralContainers": [{
                "name": format!("dump-{number}"), "image": "dump:1", "imagePullPolicy": "IfNotPresent",
                "terminationMessagePolicy": "File", "command": command(self.seconds, false)}]},
        });
        if let Some(replicas) = self.replicas {
            spec["replicas"] = replicas.into();
        }
        if let Some(deadline) = self.deadline {
            spec["activeDeadlineSeconds"] = deadline.into();
        }
        let mut metadata = json!({"name": "dump", "namespace": "default"});
        if self.held {
            metadata["finalizers"] = json!(["apps.kruise.io/ephemeralcontainers-cleanup"]);
        }
        json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": metadata, "spec": spec})
    }
}

/// What a container runs.
pub fn command(seconds: u32, fails: bool) -> Value {
    let code = u8::from(fails);
    json!(["sh", "-c", format!("sleep {seconds}; exit {code}")])
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// The job is deleted, and created again as at first with another container.
    Again,
    Parallelism(u8),
    Replicas(Option<u8>),
    Paused(bool),
    /// Whether containers that are added from now on fail.
    Fails(bool),
    /// There is one pod more.
    Pod,
}
