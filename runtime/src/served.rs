//! The version of each resource that the cluster serves, and the conversion of writes to it.
//!
//! Plans use the newest version of each kind. A cluster may serve an older version of some kinds: OpenKruise's
//! chart 1.8.3 serves some as `v1beta1` and others as `v1alpha1`. So each resource has its own version. Objects and
//! statuses are converted only here.

use std::{collections::BTreeMap, fmt};

use kruise_api::{convert, definition::Kind, path::segment};
use kruise_plan_kit::{Part, Patch, ResourceId, Target};
use serde_json::{Value, json};

use crate::ApiError;

/// The served version of each kind of ours. Built-in resources have no entry: they are `v1` on every supported server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    kinds: BTreeMap<ResourceId, ServedKind>,
}

#[derive(Clone, Copy)]
struct ServedKind {
    kind: &'static Kind,
    version: &'static str,
}

impl PartialEq for ServedKind {
    fn eq(&self, other: &Self) -> bool {
        self.kind.name() == other.kind.name() && self.version == other.version
    }
}

impl Eq for ServedKind {}

impl fmt::Debug for ServedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version)
    }
}

/// A write whose resource the cluster does not serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster does not serve {0}")]
pub struct NotServed(pub ResourceId);

impl FromIterator<(&'static Kind, &'static str)> for Served {
    fn from_iter<I: IntoIterator<Item = (&'static Kind, &'static str)>>(versions: I) -> Self {
        let versions = versions.into_iter();
        Self {
            kinds: versions
                .map(|(kind, version)| (ResourceId::of(kind), ServedKind { kind, version }))
                .collect(),
        }
    }
}

impl Served {
    /// Without the resources of ours that are not to be kept, as if the cluster did not serve them.
    #[must_use]
    pub fn retain(mut self, keep: impl Fn(ResourceId) -> bool) -> Self {
        self.kinds.retain(|resource, _| keep(*resource));
        self
    }

    /// Whether a list of this resource may need a conversion webhook. The definition decides that, and a published
    /// one may do so for any kind. Built-in resources are in groups without a dot, or below `k8s.io`.
    pub fn may_be_converted(resource: ResourceId) -> bool {
        resource.group.contains('.') && !resource.group.ends_with(".k8s.io")
    }

    /// The served version, such as `v1alpha1`; `None` if the resource is not served.
    pub fn version(&self, resource: ResourceId) -> Option<&'static str> {
        if Self::may_be_converted(resource) {
            self.kinds.get(&resource).map(|served| served.version)
        } else {
            Some("v1")
        }
    }

    fn kind(&self, resource: ResourceId) -> Option<&'static Kind> {
        self.kinds.get(&resource).map(|served| served.kind)
    }

    /// The served `apiVersion`, such as `apps.kruise.io/v1alpha1`.
    pub fn api_version(&self, resource: ResourceId) -> Result<String, NotServed> {
        let version = self.version(resource).ok_or(NotServed(resource))?;
        Ok(match resource.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        })
    }

    /// The path of a collection, in one namespace or in all. `None` also for cluster-scoped resources.
    pub fn collection(&self, resource: ResourceId, namespace: Option<&str>) -> Result<String, NotServed> {
        let api_version = self.api_version(resource)?;
        let root = if resource.group.is_empty() { "api" } else { "apis" };
        let plural = resource.plural;
        Ok(match namespace {
            Some(namespace) => {
                format!("/{root}/{api_version}/namespaces/{}/{plural}", segment(namespace))
            }
            None => format!("/{root}/{api_version}/{plural}"),
        })
    }

    /// The path of an object or its subresource, or of the collection if `name` is empty.
    pub fn path(&self, target: &Target, part: Part) -> Result<String, NotServed> {
        let namespace = Some(&*target.namespace).filter(|namespace| !namespace.is_empty());
        let mut path = self.collection(target.resource, namespace)?;
        if !target.name.is_empty() {
            path.push('/');
            path.push_str(&segment(&target.name));
        }
        path.push_str(match part {
            Part::Main => "",
            Part::Status => "/status",
            Part::Resize => "/resize",
            Part::EphemeralContainers => "/ephemeralcontainers",
        });
        Ok(path)
    }

    /// Converts an object to the served version.
    pub fn object(&self, resource: ResourceId, mut object: Value) -> Result<Value, NotServed> {
        let wanted = self.api_version(resource)?;
        if let Some(kind) = self.kind(resource) {
            // Our kinds convert between all versions that discovery accepts.
            convert::convert_as(kind, &mut object, &wanted).map_err(|_| NotServed(resource))?;
        }
        Ok(object)
    }

    /// A patch of a part of an object as it goes over the wire. A merge patch of a status is converted; in one of
    /// the object, members are renamed. Any other patch names members that have one place in all versions, as plans
    /// see to it.
    pub(crate) fn patch(
        &self,
        resource: ResourceId,
        part: Part,
        content_type: &str,
        patch: Value,
    ) -> Result<Value, NotServed> {
        if part == Part::Status && content_type == Patch::MERGE {
            self.status_patch(resource, patch)
        } else if part == Part::Main && content_type == Patch::MERGE {
            let version = self.version(resource).ok_or(NotServed(resource))?;
            let kind = self.kind(resource);
            Ok(match kind {
                Some(kind) => convert::convert_patch(kind, patch, version),
                None => patch,
            })
        } else {
            Ok(patch)
        }
    }

    /// A merge patch of a status, `{"status": {…}}` and what guards it, as it goes over the wire.
    pub fn status_patch(&self, resource: ResourceId, mut patch: Value) -> Result<Value, NotServed> {
        let version = self.version(resource).ok_or(NotServed(resource))?;
        if let Some(kind) = self.kind(resource)
            && let Some(status) = patch.get_mut("status")
        {
            *status = convert::convert_status(kind, status.take(), version);
        }
        Ok(patch)
    }

    /// The merge patch of the object, `{"metadata": {"annotations": {…}}}`, that a merge patch of its status also
    /// needs: the served version has a part of the status there. `None` if it has not, or the status patch says
    /// nothing of that part.
    pub fn annotations_patch(&self, resource: ResourceId, patch: &Value) -> Result<Option<Value>, NotServed> {
        let version = self.version(resource).ok_or(NotServed(resource))?;
        let kind = self.kind(resource);
        let annotations = kind
            .zip(patch.get("status"))
            .and_then(|(kind, status)| convert::status_annotations(kind, status, version));
        Ok(annotations.map(|annotations| json!({"metadata": {"annotations": annotations}})))
    }
}

impl From<NotServed> for ApiError {
    fn from(error: NotServed) -> Self {
        Self::Invalid(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use kruise_api::{cloneset, containerrecreaterequest, imagepulljob, persistentpodstate, statefulset};

    use super::*;

    const STATEFULSETS: ResourceId = statefulset::RESOURCE;

    /// Served versions of chart 1.8.3.
    fn chart() -> Served {
        [(&statefulset::KIND, "v1beta1"), (&imagepulljob::KIND, "v1alpha1")]
            .into_iter()
            .collect()
    }

    fn target(resource: ResourceId, name: &str) -> Target {
        Target {
            resource,
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    #[test]
    fn each_resource_has_its_served_version_in_its_path() {
        let served = chart();
        for (resource, part, path) in [
            (
                ResourceId::PODS,
                Part::Resize,
                "/api/v1/namespaces/shop/pods/a/resize",
            ),
            (
                ResourceId::PODS,
                Part::EphemeralContainers,
                "/api/v1/namespaces/shop/pods/a/ephemeralcontainers",
            ),
            (
                ResourceId::REVISIONS,
                Part::Main,
                "/apis/apps/v1/namespaces/shop/controllerrevisions/a",
            ),
            (
                STATEFULSETS,
                Part::Status,
                "/apis/apps.kruise.io/v1beta1/namespaces/shop/statefulsets/a/status",
            ),
            (
                imagepulljob::RESOURCE,
                Part::Main,
                "/apis/apps.kruise.io/v1alpha1/namespaces/shop/imagepulljobs/a",
            ),
        ] {
            assert_eq!(served.path(&target(resource, "a"), part).unwrap(), path);
        }
        let odd = Target {
            namespace: "a/b".into(),
            ..target(ResourceId::PODS, "../x?y")
        };
        assert_eq!(
            served.path(&odd, Part::Status).unwrap(),
            "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3Fy/status"
        );
        let missing = served.path(&target(cloneset::RESOURCE, "a"), Part::Main);
        assert_eq!(
            missing.unwrap_err().to_string(),
            "the cluster does not serve clonesets.apps.kruise.io"
        );
    }

    #[test]
    fn an_object_is_converted_to_the_served_version() {
        let job = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "spec": {"image": "web:1"}});
        let sent = chart().object(imagepulljob::RESOURCE, job).unwrap();
        assert_eq!(sent["apiVersion"], "apps.kruise.io/v1alpha1");
        assert_eq!(sent["spec"]["image"], "web:1");
        let pod = json!({"apiVersion": "v1", "kind": "Pod"});
        assert_eq!(chart().object(ResourceId::PODS, pod.clone()).unwrap(), pod);
    }

    #[test]
    fn a_status_patch_has_no_fields_that_the_served_version_lacks() {
        let patch = json!({"status": {"replicas": 3, "updatedReadyReplicas": 2}});
        let older: Served = [(&statefulset::KIND, "v1alpha1")].into_iter().collect();
        let sent = older.status_patch(STATEFULSETS, patch.clone()).unwrap();
        assert_eq!(sent, json!({"status": {"replicas": 3}}));
        assert_eq!(chart().status_patch(STATEFULSETS, patch.clone()).unwrap(), patch);
    }

    #[test]
    fn members_of_a_patch_have_their_names_in_the_served_version() {
        const STATES: ResourceId = persistentpodstate::RESOURCE;
        let patch = json!({"spec": {"requiredPersistentTopology": {"keys": ["zone"]}, "persistentPodAnnotations": null,
            "preferredPersistentTopology": [{"weight": 1, "preference": {"keys": ["host"]}}]}});
        let sent = |version: &'static str| {
            let served: Served = [(&persistentpodstate::KIND, version)].into_iter().collect();
            served
                .patch(STATES, Part::Main, Patch::MERGE, patch.clone())
                .unwrap()
        };
        assert_eq!(sent("v1beta1"), patch);
        assert_eq!(
            sent("v1alpha1"),
            json!({"spec": {"requiredPersistentTopology": {"nodeTopologyKeys": ["zone"]}, "persistentPodAnnotations": null,
                "preferredPersistentTopology": [{"weight": 1, "preference": {"nodeTopologyKeys": ["host"]}}]}})
        );
    }

    #[test]
    fn parts_of_a_status_are_annotations_in_an_older_version_of_one_kind() {
        const REQUESTS: ResourceId = containerrecreaterequest::RESOURCE;
        let entry = json!({"name": "a", "ready": true, "restartCount": 1});
        let condition = json!({"type": "PreRecreateGrace", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let patch = json!({"status": {"containerStatusSnapshot": [entry], "conditions": [condition]}});
        let version =
            |version| -> Served { [(&containerrecreaterequest::KIND, version)].into_iter().collect() };
        let (older, newer) = (version("v1alpha1"), version("v1beta1"));
        let expected = json!({"metadata": {"annotations": {
            "crr.apps.kruise.io/sync-container-statuses": json!([entry]).to_string(),
            "crr.apps.kruise.io/unready-acquired": "2026-01-01T00:00:00Z"}}});
        assert_eq!(older.annotations_patch(REQUESTS, &patch).unwrap(), Some(expected));
        assert_eq!(
            older.status_patch(REQUESTS, patch.clone()).unwrap(),
            json!({"status": {}})
        );
        assert_eq!(newer.annotations_patch(REQUESTS, &patch).unwrap(), None);
        assert_eq!(newer.status_patch(REQUESTS, patch.clone()).unwrap(), patch);
        let end = json!({"status": {"phase": "Completed"}});
        assert_eq!(older.annotations_patch(REQUESTS, &end).unwrap(), None);
        let counts = json!({"status": {"replicas": 3, "conditions": []}});
        let sets: Served = [(&statefulset::KIND, "v1alpha1"), (&cloneset::KIND, "v1alpha1")]
            .into_iter()
            .collect();
        for resource in [STATEFULSETS, cloneset::RESOURCE] {
            assert_eq!(sets.annotations_patch(resource, &counts).unwrap(), None);
        }
    }
}
