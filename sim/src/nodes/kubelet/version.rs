//! What differs between versions of the kubelet, as far as workloads notice it. A node's version is the
//! `status.nodeInfo.kubeletVersion` that it is created with.

use go_compat::container::{image_hash, whole_hash};
use serde_json::Value;

use super::spec::ContainerSpec;
use crate::object::at;

/// The version of a node that is created without one: that of the API.
pub(in crate::nodes) const NEWEST: &str = "v1.34.2";

/// A version of the kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    minor: u32,
}

impl Default for Version {
    fn default() -> Self {
        Self { minor: 34 }
    }
}

impl Version {
    /// That of a node.
    pub(super) fn of(node: &Value) -> Self {
        let text = at(node, "/status/nodeInfo/kubeletVersion").and_then(Value::as_str);
        let minor = text.and_then(|text| text.split('.').nth(1)?.parse().ok());
        minor.map_or_else(Self::default, |minor| Self { minor })
    }

    /// Does it report which generation of a pod it has seen, in the status and in its conditions?
    pub(super) fn reports_generations(self) -> bool {
        self.minor >= 34
    }

    /// Does it report that a container which begins anew has started and is ready because the one before it was,
    /// until its startup probe has run?
    pub(super) fn inherits_probes(self) -> bool {
        (35..=37).contains(&self.minor)
    }

    /// The hash that it records of a container.
    pub(super) fn plain_hash(self, spec: &ContainerSpec<'_>) -> u64 {
        if self.minor >= 31 {
            image_hash(spec.name, spec.image)
        } else {
            whole_hash(spec.object)
        }
    }
}
