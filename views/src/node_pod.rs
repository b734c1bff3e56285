//! A pod as the agent of its node reads it.

use kruise_api::{meta::OwnerReference, names};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::{Labels, MetadataMap, MetadataVariable};

/// What the agent of a node needs to know to report a pod's containers, and to restart those whose environment is
/// outdated. Of pods that it does not report on, only the identity is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Wire")]
pub struct NodePodView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Is it being deleted?
    pub deleting: bool,
    /// Does the agent report its containers? A workload of Kruise controls the pod, or sidecars are injected into it.
    pub is_reported: bool,
    /// Is it being updated in place, and not ready for that reason (condition `InPlaceUpdateReady` is False)?
    pub is_updating: bool,
    /// Its address, once it has one.
    pub ip: Option<Box<str>>,
    /// Regular containers of the specification, in order.
    pub containers: Box<[NodeContainerView]>,
    /// Reported states of the regular containers, in the order of the status.
    pub statuses: Box<[NodeContainerStatusView]>,
    /// The annotation `apps.kruise.io/runtime-containers-meta`, as it is stored.
    pub report: Option<Box<str>>,
}

/// A container of the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeContainerView {
    /// Name.
    pub name: Box<str>,
    /// Its environment variables that read a label or an annotation of the pod, and what a container that starts
    /// now reads.
    pub environment: Box<[(Box<str>, Box<str>)]>,
}

/// The reported state of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeContainerStatusView {
    /// Name.
    pub name: Box<str>,
    /// Its id, after the name of its runtime: `containerd://0123…`. Empty before it was created.
    pub container_id: Box<str>,
    /// Is it running?
    pub is_running: bool,
}

kube_cache::cached!(NodePodView; deleting);

impl NodePodView {
    /// A container of the specification.
    pub fn container(&self, name: &str) -> Option<&NodeContainerView> {
        self.containers.iter().find(|container| &*container.name == name)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    deletion_timestamp: Option<IgnoredAny>,
    labels: Labels,
    annotations: Labels,
    owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    containers: Option<Vec<Container>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    name: Box<str>,
    env: Option<Vec<Variable>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Variable {
    name: Box<str>,
    value_from: Option<Source>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    field_ref: Option<Field>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Field {
    field_path: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
    conditions: Option<Vec<Condition>>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: Box<str>,
    #[serde(rename = "containerID")]
    container_id: Box<str>,
    state: Option<State>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    running: Option<IgnoredAny>,
}

impl Metadata {
    fn is_reported(&self) -> bool {
        let mut owners = self.owner_references.iter().flatten();
        owners.any(|owner| owner.controller && owner.group() == names::APPS_GROUP)
            || self.annotations.get(names::sidecarset::HASH).is_some()
    }

    /// What a container that starts now reads in a variable; empty if the pod has no such label or annotation.
    fn value_of(&self, variable: &MetadataVariable) -> &str {
        let map = match variable.map {
            MetadataMap::Labels => &self.labels,
            MetadataMap::Annotations => &self.annotations,
        };
        map.get(&variable.key).unwrap_or_default()
    }

    fn container(&self, wire: Container) -> NodeContainerView {
        let variables = wire.env.into_iter().flatten().filter_map(|one| {
            let field = one.value_from?.field_ref?;
            MetadataVariable::of(&one.name, &field.field_path)
        });
        let read = variables.map(|variable| {
            let value = self.value_of(&variable).into();
            (variable.name, value)
        });
        NodeContainerView {
            name: wire.name,
            environment: read.collect(),
        }
    }
}

impl From<Wire> for NodePodView {
    fn from(wire: Wire) -> Self {
        let Wire {
            metadata,
            spec,
            status,
        } = wire;
        let is_reported = metadata.is_reported();
        let identity = |metadata: Metadata| Self {
            deleting: metadata.deletion_timestamp.is_some(),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            ..Self::default()
        };
        if !is_reported {
            return identity(metadata);
        }
        let mut conditions = status.conditions.into_iter().flatten();
        let containers = spec.containers.into_iter().flatten();
        Self {
            is_reported,
            is_updating: conditions
                .any(|one| &*one.kind == names::IN_PLACE_UPDATE_READY && &*one.status == "False"),
            ip: status.pod_ip.filter(|ip| !ip.is_empty()),
            containers: containers.map(|one| metadata.container(one)).collect(),
            statuses: status
                .container_statuses
                .into_iter()
                .flatten()
                .map(NodeContainerStatusView::from)
                .collect(),
            report: metadata
                .annotations
                .get(names::RUNTIME_CONTAINERS_META)
                .map(Into::into),
            ..identity(metadata)
        }
    }
}

impl From<ContainerStatus> for NodeContainerStatusView {
    fn from(wire: ContainerStatus) -> Self {
        Self {
            name: wire.name,
            container_id: wire.container_id,
            is_running: wire.state.is_some_and(|state| state.running.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(metadata: Value) -> NodePodView {
        let mut pod = json!({
            "metadata": {"namespace": "shop", "name": "web-x", "uid": "u1", "resourceVersion": "7",
                         "labels": {"app": "web"}},
            "spec": {"containers": [
                {"name": "main", "image": "web:1", "env": [
                    {"name": "PLAIN", "value": "1"},
                    {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                    {"name": "GONE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['gone']"}}},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
                {"name": "log", "env": null}]},
            "status": {"podIP": "10.0.0.7", "conditions": [{"type": "InPlaceUpdateReady", "status": "False"}],
                "containerStatuses": [
                    {"name": "main", "containerID": "containerd://1", "state": {"running": {"startedAt": null}}},
                    {"name": "log", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
        });
        let members = metadata.as_object().unwrap().clone();
        pod["metadata"].as_object_mut().unwrap().extend(members);
        serde_json::from_value(pod).unwrap()
    }

    fn owner(api_version: &str, controller: bool) -> Value {
        json!({"ownerReferences": [{"apiVersion": api_version, "kind": "CloneSet", "name": "web", "uid": "o",
                                    "controller": controller}]})
    }

    #[test]
    fn what_a_container_reads_of_labels_and_annotations_is_resolved() {
        let pod = pod(owner("apps.kruise.io/v1alpha1", true));
        assert!(pod.is_reported && pod.is_updating && !pod.deleting);
        let environment = &pod.container("main").unwrap().environment;
        let pairs: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(pairs, [("APP", "web"), ("GONE", "")]);
        assert!(pod.container("log").unwrap().environment.is_empty());
        let running: Vec<bool> = pod.statuses.iter().map(|status| status.is_running).collect();
        assert_eq!(running, [true, false]);
        assert_eq!((pod.ip.as_deref(), pod.report), (Some("10.0.0.7"), None));
    }

    #[test]
    fn pods_of_other_workloads_keep_their_identity_only() {
        for other in [
            owner("apps/v1", true),
            owner("apps.kruise.io/v1beta1", false),
            json!({}),
        ] {
            let pod = pod(other);
            assert_eq!((&*pod.uid, &*pod.resource_version), ("u1", "7"));
            assert!(!pod.is_reported && pod.containers.is_empty() && pod.statuses.is_empty());
        }
        let injected = json!({"annotations": {"kruise.io/sidecarset-hash": "{}",
                                              "apps.kruise.io/runtime-containers-meta": "{}"}});
        let pod = pod(injected);
        assert!(pod.is_reported && pod.report.as_deref() == Some("{}"));
    }

    #[test]
    fn a_terminating_pod_is_seen_as_one() {
        assert!(pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})).deleting);
    }
}
