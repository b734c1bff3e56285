//! A resource of the API, as data. Those of kinds of this project are declared beside their kind (`RESOURCE`); the
//! constants here are of Kubernetes.

use std::fmt;

use crate::definition::Kind;

/// A resource by group and plural name. The version on the wire is not part of it: it depends on the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural name in paths, such as `pods`.
    pub plural: &'static str,
}

impl ResourceId {
    /// Pods.
    pub const PODS: Self = Self::core("pods");
    /// Templates of pods.
    pub const POD_TEMPLATES: Self = Self::core("podtemplates");
    /// Persistent volume claims.
    pub const CLAIMS: Self = Self::core("persistentvolumeclaims");
    /// ConfigMaps.
    pub const CONFIG_MAPS: Self = Self::core("configmaps");
    /// Nodes.
    pub const NODES: Self = Self::core("nodes");
    /// Namespaces.
    pub const NAMESPACES: Self = Self::core("namespaces");
    /// Controller revisions of `apps`.
    pub const REVISIONS: Self = Self::apps("controllerrevisions");
    /// Deployments.
    pub const DEPLOYMENTS: Self = Self::apps("deployments");
    /// ReplicaSets.
    pub const REPLICA_SETS: Self = Self::apps("replicasets");
    /// StatefulSets of `apps`.
    pub const APPS_STATEFULSETS: Self = Self::apps("statefulsets");
    /// Storage classes.
    pub const STORAGE_CLASSES: Self = Self {
        group: "storage.k8s.io",
        plural: "storageclasses",
    };
    /// Secrets.
    pub const SECRETS: Self = Self::core("secrets");
    /// Jobs of `batch`.
    pub const JOBS: Self = Self {
        group: "batch",
        plural: "jobs",
    };

    /// The resource of a kind.
    pub const fn of(kind: &Kind) -> Self {
        Self {
            group: kind.group,
            plural: kind.plural,
        }
    }

    /// A resource of the core group.
    pub const fn core(plural: &'static str) -> Self {
        Self { group: "", plural }
    }

    /// A resource of `apps`.
    pub const fn apps(plural: &'static str) -> Self {
        Self {
            group: "apps",
            plural,
        }
    }
}

impl fmt::Display for ResourceId {
    /// `plural` of the core group, else `plural.group`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plural)?;
        if self.group.is_empty() {
            return Ok(());
        }
        write!(f, ".{}", self.group)
    }
}
