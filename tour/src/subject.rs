//! The workloads of the tour.

/// A workload, its pods and what else is shown of it. All of it is in the namespace `default`.
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
    label: "app=db",
    shown: "asts,pods,pvc",
    file: "db.yaml",
    manifest: include_str!("../assets/db.yaml"),
};

/// Names of all files, and what is in them.
pub const FILES: [(&str, &str); 4] = [
    (WEB.file, WEB.manifest),
    (BUDGET.file, BUDGET.manifest),
    (DEBUG.file, DEBUG.manifest),
    (DB.file, DB.manifest),
];

impl Subject {
    /// `kind.group/name` as kubectl prints it.
    pub fn printed(&self) -> String {
        format!("{}.apps.kruise.io/{}", self.kind.to_lowercase(), self.name)
    }
}
