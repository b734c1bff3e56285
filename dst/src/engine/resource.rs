//! Resources that managers watch.

/// A resource of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Group, empty for the core group.
    pub group: &'static str,
    /// The version that managers watch.
    pub version: &'static str,
    /// Plural.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
}

/// Content type of a merge patch.
pub const MERGE: &str = "application/merge-patch+json";

/// Pods.
pub const PODS: Resource = Resource::core("pods", "Pod");
/// Nodes.
pub const NODES: Resource = Resource::core("nodes", "Node");
/// PersistentVolumeClaims.
pub const CLAIMS: Resource = Resource::core("persistentvolumeclaims", "PersistentVolumeClaim");
/// Namespaces.
pub const NAMESPACES: Resource = Resource::core("namespaces", "Namespace");
/// ConfigMaps, among them the barriers of pods whose containers start in order.
pub const CONFIGMAPS: Resource = Resource::core("configmaps", "ConfigMap");
/// MutatingWebhookConfigurations, from which replicas learn for what others have widened match conditions.
pub const MUTATING_WEBHOOKS: Resource = Resource {
    group: "admissionregistration.k8s.io",
    version: "v1",
    plural: "mutatingwebhookconfigurations",
    kind: "MutatingWebhookConfiguration",
};
/// Jobs of Kubernetes.
pub const JOBS: Resource = Resource {
    group: "batch",
    version: "v1",
    plural: "jobs",
    kind: "Job",
};
/// ControllerRevisions.
pub const REVISIONS: Resource = Resource {
    group: "apps",
    version: "v1",
    plural: "controllerrevisions",
    kind: "ControllerRevision",
};

impl Resource {
    /// One of the core group.
    pub const fn core(plural: &'static str, kind: &'static str) -> Self {
        Self {
            group: "",
            version: "v1",
            plural,
            kind,
        }
    }

    /// One of OpenKruise's policies, in the version that managers watch.
    pub const fn policy(plural: &'static str, kind: &'static str) -> Self {
        Self {
            group: "policy.kruise.io",
            ..Self::kruise(plural, kind)
        }
    }

    /// One of OpenKruise's, in the version that managers watch.
    pub const fn kruise(plural: &'static str, kind: &'static str) -> Self {
        Self {
            group: "apps.kruise.io",
            version: "v1beta1",
            plural,
            kind,
        }
    }

    /// `apiVersion` of its objects.
    pub fn api_version(self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Is this the path of all its objects, or of those of a namespace?
    pub fn is_at(self, path: &str) -> bool {
        let mut parts = path.split('/').skip(1);
        let group = match parts.next() {
            Some("apis") => parts.next(),
            _ => Some(""),
        };
        group == Some(self.group) && path.rsplit('/').next() == Some(self.plural)
    }

    /// The same objects in the older version, which is converted.
    #[must_use]
    pub const fn older(self) -> Self {
        Self {
            version: "v1alpha1",
            ..self
        }
    }

    /// Path of those in the namespace of scenarios.
    pub fn in_default(self) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        format!(
            "/{root}/{}/namespaces/default/{}",
            self.api_version(),
            self.plural
        )
    }

    /// Path of one in the namespace of scenarios.
    pub fn one(self, name: &str) -> String {
        format!("{}/{name}", self.in_default())
    }

    /// Path of all its objects.
    pub fn path(self) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        format!("/{root}/{}/{}", self.api_version(), self.plural)
    }
}

/// A value for each resource that has one.
#[derive(Clone, Debug)]
pub struct PerResource<T>(Vec<(Resource, T)>);

impl<T> Default for PerResource<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<(Resource, T)> for PerResource<T> {
    fn from_iter<I: IntoIterator<Item = (Resource, T)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<T> PerResource<T> {
    /// The value of a resource.
    pub fn get(&self, of: Resource) -> Option<&T> {
        let found = self.0.iter().find(|(one, _)| *one == of);
        found.map(|(_, value)| value)
    }

    /// The value of a resource, made if there is none.
    pub fn entry(&mut self, of: Resource) -> &mut T
    where
        T: Default,
    {
        let at = self.0.iter().position(|(one, _)| *one == of);
        let at = at.unwrap_or_else(|| {
            self.0.push((of, T::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl<T> PerResource<T> {
    /// Another value for each.
    pub fn map<R>(&self, change: impl Fn(&T) -> R) -> PerResource<R> {
        PerResource(self.0.iter().map(|(of, value)| (*of, change(value))).collect())
    }
}

impl<T: Copy + Default> PerResource<T> {
    /// The value of a resource, or the default.
    pub fn of(&self, of: Resource) -> T {
        self.get(of).copied().unwrap_or_default()
    }
}
