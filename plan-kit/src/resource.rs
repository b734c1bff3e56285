//! Which resource of the API, as data: a kind that comes later is a constant, not a new arm of a match.

use std::fmt;

use kruise_api::{
    definition::Kind, names::APPS_GROUP, persistentpodstate, podunavailablebudget, resourcedistribution,
    uniteddeployment, workloadspread,
};

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
    /// CloneSets.
    pub const CLONESETS: Self = Self::kruise("clonesets");
    /// StatefulSets of `apps.kruise.io`.
    pub const STATEFULSETS: Self = Self::kruise("statefulsets");
    /// DaemonSets of `apps.kruise.io`.
    pub const DAEMONSETS: Self = Self::kruise("daemonsets");
    /// Storage classes.
    pub const STORAGE_CLASSES: Self = Self {
        group: "storage.k8s.io",
        plural: "storageclasses",
    };
    /// SidecarSets. They are in no namespace.
    pub const SIDECARSETS: Self = Self::kruise("sidecarsets");
    /// BroadcastJobs.
    pub const BROADCAST_JOBS: Self = Self::kruise("broadcastjobs");
    /// Secrets.
    pub const SECRETS: Self = Self::core("secrets");
    /// NodeImages. They are in no namespace.
    pub const NODE_IMAGES: Self = Self::kruise("nodeimages");
    /// ImagePullJobs.
    pub const IMAGE_PULL_JOBS: Self = Self::kruise("imagepulljobs");
    /// ImageListPullJobs.
    pub const IMAGE_LIST_PULL_JOBS: Self = Self::kruise("imagelistpulljobs");
    /// PodProbeMarkers.
    pub const POD_PROBE_MARKERS: Self = Self::kruise("podprobemarkers");
    /// NodePodProbes. They are in no namespace.
    pub const NODE_POD_PROBES: Self = Self::kruise("nodepodprobes");
    /// AdvancedCronJobs.
    pub const ADVANCED_CRON_JOBS: Self = Self::kruise("advancedcronjobs");
    /// EphemeralJobs.
    pub const EPHEMERAL_JOBS: Self = Self::kruise("ephemeraljobs");
    /// ContainerRecreateRequests.
    pub const CONTAINER_RECREATE_REQUESTS: Self = Self::kruise("containerrecreaterequests");
    /// Jobs of `batch`.
    pub const JOBS: Self = Self {
        group: "batch",
        plural: "jobs",
    };

    /// PodUnavailableBudgets.
    pub const POD_UNAVAILABLE_BUDGETS: Self = Self::of(&podunavailablebudget::KIND);

    /// ResourceDistributions. They are in no namespace.
    pub const RESOURCE_DISTRIBUTIONS: Self = Self::of(&resourcedistribution::KIND);

    /// PersistentPodStates.
    pub const PERSISTENT_POD_STATES: Self = Self::of(&persistentpodstate::KIND);

    /// UnitedDeployments.
    pub const UNITED_DEPLOYMENTS: Self = Self::of(&uniteddeployment::KIND);

    /// WorkloadSpreads.
    pub const WORKLOAD_SPREADS: Self = Self::of(&workloadspread::KIND);

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

    /// A resource of `apps.kruise.io`.
    pub const fn kruise(plural: &'static str) -> Self {
        Self {
            group: APPS_GROUP,
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
