//! What a planner asks to see before it can decide.

use crate::{ResourceId, trial::PodTrial, write::Target};

/// Something the planner must see before it can decide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The whole object, from the cache's raw copy or the API.
    Full(ResourceId, String, String),
    /// The object read from the API server, not from a cache.
    Live(ResourceId, String, String),
    /// As `Live`, of an object that others can be planned without: if it cannot be read, the error is in the next
    /// plan's memory, and the reconcile goes on.
    Content(ResourceId, String, String),
    /// Whether the server would take a pod. The answer is in [`Memory::trials`](crate::Memory::trials).
    Trial(Box<PodTrial>),
}

impl Need {
    /// The object.
    pub fn target(&self) -> Target {
        let (resource, namespace, name) = match self {
            Self::Full(resource, namespace, name)
            | Self::Live(resource, namespace, name)
            | Self::Content(resource, namespace, name) => (*resource, namespace.as_str(), name.as_str()),
            Self::Trial(trial) => (ResourceId::PODS, trial.namespace.as_str(), ""),
        };
        Target {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}
