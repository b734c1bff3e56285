//! The fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::KIND;
use crate::parse::Parse;
use crate::{
    convert::require_older,
    meta::{ObjectMeta, null_as_default},
    podprobemarker::State,
};

/// A NodePodProbe as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodePodProbe {
    /// Identity and version.
    pub metadata: ObjectMeta,
    /// `spec.podProbes`: the pods that the node's agent probes, in the order in which they are stored.
    pub pods: Vec<PodProbes>,
    /// `status.podProbeStatuses`: their results.
    pub statuses: Vec<PodProbeStatus>,
}

/// The probes of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct PodProbes {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
    /// Its address; empty until it has one.
    #[serde(rename = "IP", deserialize_with = "null_as_default")]
    pub ip: String,
    /// The probes.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ContainerProbe>,
    /// All other members, as they are stored.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// A probe of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerProbe {
    /// Name: see [`ProbeName`].
    pub name: String,
    /// The container.
    #[serde(deserialize_with = "null_as_default")]
    pub container_name: String,
    /// The probe, as it is stored.
    pub probe: Value,
    /// All other members, as they are stored.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// The name of a probe of a PodProbeMarker in NodePodProbes: `marker#probe`. Neither part has a number sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeName<'a> {
    /// Name of the marker, which is in the namespace of the pod.
    pub marker: &'a str,
    /// Name of the probe in the marker.
    pub probe: &'a str,
}

impl<'a> ProbeName<'a> {
    /// Reads a name; none if it belongs to no marker.
    pub fn parse(name: &'a str) -> Option<Self> {
        let (marker, probe) = name.split_once('#')?;
        Some(Self { marker, probe })
    }

    /// As it is stored.
    pub fn to_text(self) -> String {
        format!("{}#{}", self.marker, self.probe)
    }
}

/// The results of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodProbeStatus {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
    /// One for each probe that has been run.
    #[serde(deserialize_with = "null_as_default")]
    pub probe_states: Vec<ProbeState>,
}

/// The result of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProbeState {
    /// Name of the probe, as in the specification.
    pub name: String,
    /// The result.
    #[serde(deserialize_with = "null_as_default")]
    pub state: State,
    /// When the container was probed, as it is stored.
    pub last_probe_time: Option<String>,
    /// When the result changed, as it is stored.
    pub last_transition_time: Option<String>,
    /// Output of the probe; empty if there is none.
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
}

impl PodProbes {
    /// The markers that have probes of the pod, by namespace and name.
    pub fn markers(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self
            .probes
            .iter()
            .filter_map(|probe| ProbeName::parse(&probe.name));
        names.map(|name| (&*self.namespace, name.marker))
    }
}

impl NodePodProbe {
    /// The entry of a pod.
    pub fn pod(&self, namespace: &str, name: &str, uid: &str) -> Option<&PodProbes> {
        let mut pods = self.pods.iter();
        pods.find(|pod| pod.name == name && pod.namespace == namespace && pod.uid == uid)
    }

    /// The markers that have probes here, by namespace and name. One may come several times.
    pub fn markers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pods.iter().flat_map(PodProbes::markers)
    }

    /// Reads a stored object.
    ///
    /// # Errors
    /// In plain words, if it is of another version, or a field has another type.
    pub fn from_value(object: Value) -> Result<Self, String> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Wire {
            metadata: ObjectMeta,
            #[serde(deserialize_with = "null_as_default")]
            spec: Spec,
            #[serde(deserialize_with = "null_as_default")]
            status: Status,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Spec {
            #[serde(deserialize_with = "null_as_default")]
            pod_probes: Vec<PodProbes>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Status {
            #[serde(deserialize_with = "null_as_default")]
            pod_probe_statuses: Vec<PodProbeStatus>,
        }
        require_older(&KIND, &object)?;
        let wire = Wire::deserialize(object).map_err(|error| error.to_string())?;
        Ok(Self {
            metadata: wire.metadata,
            pods: wire.spec.pod_probes,
            statuses: wire.status.pod_probe_statuses,
        })
    }
}

impl Parse for NodePodProbe {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored() -> Value {
        json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodePodProbe", "metadata": {"name": "n1"},
            "spec": {"podProbes": [{"name": "a", "namespace": "shop", "uid": "u", "IP": "", "newer": 1, "probes": [
                {"name": "m#p", "containerName": "c", "probe": {"exec": {}}, "newer": 2}]}]},
            "status": {"podProbeStatuses": [{"name": "a", "namespace": "shop", "uid": "u", "probeStates": [
                {"name": "m#p", "state": "Failed", "lastProbeTime": null, "message": "no"}, {"name": "m#q", "state": ""}]}]},
        })
    }

    #[test]
    fn entries_are_written_back_with_members_that_are_not_known() {
        let node = NodePodProbe::from_value(stored()).unwrap();
        assert_eq!(
            serde_json::to_value(&node.pods).unwrap(),
            stored()["spec"]["podProbes"]
        );
        let states = node.statuses[0].probe_states.iter().map(|state| state.state);
        assert_eq!(states.collect::<Vec<_>>(), [State::Failed, State::None]);
        assert!(node.pod("shop", "a", "u").is_some() && node.pod("shop", "a", "v").is_none());
    }

    #[test]
    fn an_empty_one_is_read_and_a_wrong_type_is_an_error() {
        let empty = json!({"apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": "n1"}, "spec": {}, "status": null});
        assert!(NodePodProbe::from_value(empty).unwrap().pods.is_empty());
        let mut wrong = stored();
        wrong["spec"]["podProbes"] = json!({});
        assert!(NodePodProbe::from_value(wrong).is_err());
    }

    #[test]
    fn names_have_two_parts() {
        let name = ProbeName::parse("m#p").unwrap();
        assert_eq!((name.marker, name.probe, &*name.to_text()), ("m", "p", "m#p"));
        assert_eq!(ProbeName::parse("m"), None);
    }
}
