//! ImagePullJobs as users create them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kruise_sim::runtime::{Options, Registries, RemoteImage};

use crate::rules::prelude::*;
use crate::subjects::nodes::NodeEdit;

pub const NAME: &str = "imagepulljob";
pub const JOBS: Resource = Resource::kruise("imagepulljobs", "ImagePullJob");
pub const NODE_IMAGES: Resource = Resource::kruise("nodeimages", "NodeImage");
pub const SECRETS: Resource = Resource::core("secrets", "Secret");

/// Nodes that a scenario has at most.
pub const MOST_NODES: u8 = 8;
/// Namespace of the copies of secrets.
pub const AGENTS: &str = "kruise-daemon-config";
/// Name of the pull secret.
pub const SECRET: &str = "registry";
/// An image that no job wants, which somebody added to a node.
pub const FOREIGN: &str = "foreign";

/// The jobs of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Nodes.
    pub nodes: u8,
    /// The jobs.
    pub jobs: [Job; 2],
    /// How many seconds a pull takes.
    pub seconds: u32,
}

/// A job when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// `image`: one of two that exist, or one that does not.
    pub image: u8,
    /// `parallelism`.
    pub parallelism: u8,
    /// Type `Never`.
    pub never: bool,
    /// It names the pull secret.
    pub secret: bool,
    /// `activeDeadlineSeconds`.
    pub deadline: Option<u32>,
    /// `ttlSecondsAfterFinished` of type `Always`. Tags that outlive such a job would be removed while nothing may
    /// happen.
    pub ttl: u32,
}

/// The name of a job.
pub fn name(place: u8) -> &'static str {
    if place == 0 { "warm" } else { "cold" }
}

impl Start {
    /// The job of this place.
    pub fn job(&self, place: u8) -> Value {
        let job = &self.jobs[usize::from(place)];
        let mut completion = json!({"type": if job.never { "Never" } else { "Always" }});
        if !job.never {
            if let Some(deadline) = job.deadline {
                completion["activeDeadlineSeconds"] = deadline.into();
            }
            completion["ttlSecondsAfterFinished"] = job.ttl.into();
        }
        let mut spec = json!({
            "image": reference(job.image), "parallelism": job.parallelism, "completionPolicy": completion,
            "pullPolicy": {"timeoutSeconds": 30, "backoffLimit": 1},
        });
        if job.secret {
            spec["pullSecrets"] = json!([SECRET]);
        }
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
            "metadata": {"name": name(place), "namespace": "default"}, "spec": spec})
    }
}

/// The pull secret, with the credentials of a number.
pub fn secret(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": "default"},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": credentials(number)}})
}

/// Credentials, base64. No registry of a scenario wants any.
pub fn credentials(number: usize) -> String {
    let user = json!({"username": "robot", "password": number.to_string()});
    let config = json!({"auths": {"registry.example": user}});
    STANDARD.encode(config.to_string())
}

/// What registries have: two of the images, of which each takes so many seconds, and not the third.
pub fn fill(registries: &mut Registries, seconds: u32) {
    let known = RemoteImage {
        bytes: Some(u64::from(seconds) * Options::default().bandwidth),
        ..RemoteImage::default()
    };
    for image in 0..MISSING {
        registries.add(&reference(image), known.clone());
    }
    registries.remove(&reference(MISSING));
}

/// The number of the image that does not exist.
pub const MISSING: u8 = 2;

/// The image with a number.
pub fn reference(image: u8) -> String {
    format!("app:{image}")
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// The job of a place is deleted, and created again as at first.
    Again(u8),
    /// It is deleted.
    Delete(u8),
    /// Its `parallelism`.
    Parallelism(u8, u8),
    /// The agent of a node is away, or is back. A label of the node says so.
    Silent(u8, bool),
    /// The agent of a node dies, and another one starts.
    Dies(u8),
    /// The disk of a node is full, or is not any more.
    Disk(u8, bool),
    /// Nobody answers at the registry.
    RegistryDown,
    /// Pulls never end.
    RegistryHangs,
    /// The registry is as it was.
    RegistryBack,
    /// Other credentials.
    Secret,
    /// What happens to a node.
    Node(u8, NodeEdit),
}
