//! The workloads of the tour.

/// Where the objects of a subject are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In the namespace `default`.
    Default,
    /// It is in no namespace, and what belongs to it in several.
    Cluster,
}

/// A workload, its pods and what else is shown of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its kind.
    pub kind: &'static str,
    /// Its resource in the group `apps.kruise.io`.
    pub plural: &'static str,
    /// Its resource as kubectl and kruise take it.
    pub short: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub scope: Scope,
    /// What `kruise explain` is asked about.
    pub explained: &'static str,
    /// Do zones of nodes matter?
    pub zoned: bool,
    /// A label of it, its pods and its volume claims.
    pub label: &'static str,
    /// Resources that are shown, as kubectl takes them.
    pub shown: &'static str,
    /// Name of the file with its manifest.
    pub file: &'static str,
    /// It, and what it needs, as YAML.
    pub manifest: &'static str,
}

/// Something that is added to a workload.
#[derive(Debug, PartialEq, Eq)]
pub struct Addition {
    /// Its group and version.
    pub api_version: &'static str,
    /// Its resource.
    pub plural: &'static str,
    /// What kubectl prints of it.
    pub printed: &'static str,
    /// Name of the file with its manifest.
    pub file: &'static str,
    /// It, as YAML.
    pub manifest: &'static str,
}

/// The budget of the CloneSet.
pub const BUDGET: Addition = Addition {
    api_version: "policy.kruise.io/v1beta1",
    plural: "podunavailablebudgets",
    printed: "podunavailablebudget.policy.kruise.io/web",
    file: "web-budget.yaml",
    manifest: include_str!("../assets/web-budget.yaml"),
};

/// The job that debugs pods of the CloneSet.
pub const DEBUG: Addition = Addition {
    api_version: "apps.kruise.io/v1alpha1",
    plural: "ephemeraljobs",
    printed: "ephemeraljob.apps.kruise.io/web",
    file: "web-debug.yaml",
    manifest: include_str!("../assets/web-debug.yaml"),
};

/// The CloneSet.
pub const WEB: Subject = Subject {
    kind: "CloneSet",
    plural: "clonesets",
    short: "clone",
    name: "web",
    scope: Scope::Default,
    explained: "clone/web",
    zoned: false,
    label: "app=web",
    shown: "clone,pods,pub,ejob",
    file: "web.yaml",
    manifest: include_str!("../assets/web.yaml"),
};

/// The StatefulSet.
pub const DB: Subject = Subject {
    kind: "StatefulSet",
    plural: "statefulsets",
    short: "asts",
    name: "db",
    scope: Scope::Default,
    explained: "asts/db",
    zoned: false,
    label: "app=db",
    shown: "asts,pods,pvc",
    file: "db.yaml",
    manifest: include_str!("../assets/db.yaml"),
};

/// The CloneSet that a WorkloadSpread puts into two zones.
pub const API: Subject = Subject {
    kind: "CloneSet",
    plural: "clonesets",
    short: "clone",
    name: "api",
    scope: Scope::Default,
    explained: "ws/api",
    zoned: true,
    label: "app=api",
    shown: "clone,pods,ws",
    file: "api.yaml",
    manifest: include_str!("../assets/api.yaml"),
};

/// The UnitedDeployment.
pub const FLEET: Subject = Subject {
    kind: "UnitedDeployment",
    plural: "uniteddeployments",
    short: "ud",
    name: "fleet",
    scope: Scope::Default,
    explained: "ud/fleet",
    zoned: true,
    label: "app=fleet",
    shown: "ud,clone,pods",
    file: "fleet.yaml",
    manifest: include_str!("../assets/fleet.yaml"),
};

/// The ResourceDistribution.
pub const TOKEN: Subject = Subject {
    kind: "ResourceDistribution",
    plural: "resourcedistributions",
    short: "distributor",
    name: "token",
    scope: Scope::Cluster,
    explained: "distributor/token",
    zoned: false,
    label: "app=token",
    shown: "distributor,secrets",
    file: "token.yaml",
    manifest: include_str!("../assets/token.yaml"),
};

/// Names of all files, and what is in them.
pub const FILES: [(&str, &str); 7] = [
    (WEB.file, WEB.manifest),
    (BUDGET.file, BUDGET.manifest),
    (DEBUG.file, DEBUG.manifest),
    (DB.file, DB.manifest),
    (API.file, API.manifest),
    (FLEET.file, FLEET.manifest),
    (TOKEN.file, TOKEN.manifest),
];

impl Subject {
    /// `kind.group/name` as kubectl prints it.
    pub fn printed(&self) -> String {
        format!("{}.apps.kruise.io/{}", self.kind.to_lowercase(), self.name)
    }
}
