//! An EphemeralJob as users create it, and the pods that it selects.

use crate::rules::prelude::*;

/// Name of the subject.
pub const NAME: &str = "ephemeraljob";
/// The component of their controller.
pub const CONTROLLER: &str = "ephemeraljob-controller";
/// EphemeralJobs.
pub const JOBS: Resource = Resource {
    version: "v1alpha1",
    ..Resource::kruise("ephemeraljobs", "EphemeralJob")
};

/// An EphemeralJob when it is created, and the pods that there are then.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// Pods at first.
    pub pods: u8,
    /// `replicas`.
    pub replicas: Option<u8>,
    /// `parallelism`.
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

impl Default for Start {
    fn default() -> Self {
        Self {
            pods: 6,
            replicas: None,
            parallelism: 2,
            seconds: 5,
            deadline: None,
            ttl: None,
            held: false,
        }
    }
}

/// Time to live of a job that stays.
const STAYS: u32 = 10_000_000;

impl Start {
    /// The job that is the `number`-th of its name. Each has a name of its own for its container, which stays in the pods.
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

/// The pod of this number.
pub fn pod(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("cart-{number}"), "namespace": "default", "labels": {"app": "cart"}},
        "spec": {"terminationGracePeriodSeconds": 3, "containers": [{"name": "main", "image": "cart:1"}]}})
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// The job is deleted, and created again as at first with another container.
    Again,
    /// `parallelism`.
    Parallelism(u8),
    /// `replicas`.
    Replicas(Option<u8>),
    /// `paused`.
    Paused(bool),
    /// Whether containers that are added from now on fail.
    Fails(bool),
    /// There is one pod more.
    Pod,
}

impl Edit {
    /// Does it end what would keep the job from its end?
    pub fn is_release(&self) -> bool {
        matches!(self, Self::Paused(false))
    }
}
