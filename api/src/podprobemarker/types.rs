//! The fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::KIND;
use crate::convert::require_older;
use crate::meta::{LabelSelector, ObjectMeta, StringMap, null_as_default};
use crate::parse::Parse;

/// A PodProbeMarker as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodProbeMarker {
    /// Identity, version and finalizers.
    pub metadata: ObjectMeta,
    /// Which pods are probed, and how they are marked.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: PodProbeMarkerSpec,
    /// Last reported state; none before the first report.
    pub status: Option<PodProbeMarkerStatus>,
}

/// Which pods are probed, and how they are marked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodProbeMarkerSpec {
    /// Labels of the pods.
    #[serde(deserialize_with = "null_as_default")]
    pub selector: LabelSelector,
    /// The probes.
    #[serde(deserialize_with = "null_as_default")]
    pub probes: Vec<MarkedProbe>,
}

/// A probe of a container, and what its results do to the pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MarkedProbe {
    /// Name, unique in the marker.
    pub name: String,
    /// The container that is probed.
    #[serde(deserialize_with = "null_as_default")]
    pub container_name: String,
    /// The probe, as it is stored.
    pub probe: Value,
    /// The condition that has the result; empty if there is none.
    #[serde(deserialize_with = "null_as_default")]
    pub pod_condition_type: String,
    /// Labels and annotations by result.
    #[serde(deserialize_with = "null_as_default")]
    pub marker_policy: Vec<MarkerPolicy>,
}

/// Labels and annotations of pods after one kind of result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MarkerPolicy {
    /// The result.
    pub state: State,
    /// Labels after it.
    #[serde(deserialize_with = "null_as_default")]
    pub labels: StringMap,
    /// Annotations after it.
    #[serde(deserialize_with = "null_as_default")]
    pub annotations: StringMap,
}

/// The result of a probe. One that this build does not know is read as `Unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(from = "String")]
pub enum State {
    /// There is none yet: the field is empty.
    #[default]
    None,
    /// The probe succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// The container began anew, and was not probed since.
    Unknown,
}

impl From<String> for State {
    fn from(text: String) -> Self {
        match &*text {
            "" => Self::None,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }
}

/// Reported state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodProbeMarkerStatus {
    /// Generation that the number belongs to.
    pub observed_generation: i64,
    /// Pods that match and are probed.
    #[serde(deserialize_with = "null_as_default")]
    pub matched_pods: i64,
}

impl PodProbeMarker {
    /// Reads a stored object.
    ///
    /// # Errors
    /// In plain words, if it is of another version, or a field has another type.
    pub fn from_value(object: Value) -> Result<Self, String> {
        require_older(&KIND, &object)?;
        Self::deserialize(object).map_err(|error| error.to_string())
    }

    /// The probe of this name.
    pub fn probe(&self, name: &str) -> Option<&MarkedProbe> {
        self.spec.probes.iter().find(|probe| probe.name == name)
    }
}

impl Parse for PodProbeMarker {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_marker_is_read_with_and_without_what_is_optional() {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": "idle"},
            "spec": {"selector": {"matchLabels": {"app": "game"}}, "probes": [
                {"name": "a", "containerName": "main", "probe": {"exec": {"command": ["x"]}}, "markerPolicy": null},
                {"name": "b", "containerName": "main", "probe": {}, "podConditionType": "c", "markerPolicy": [
                    {"state": "Failed", "labels": {"k": "v"}}, {"state": "Maybe"}]},
            ]},
        });
        let marker = PodProbeMarker::from_value(object.clone()).unwrap();
        assert_eq!((marker.status, marker.spec.probes.len()), (None, 2));
        let states = marker
            .probe("b")
            .unwrap()
            .marker_policy
            .iter()
            .map(|policy| policy.state);
        assert_eq!(states.collect::<Vec<_>>(), [State::Failed, State::Unknown]);
        let mut object = object;
        object["status"] = json!({"observedGeneration": 1});
        let status = PodProbeMarker::from_value(object).unwrap().status.unwrap();
        assert_eq!((status.observed_generation, status.matched_pods), (1, 0));
    }

    #[test]
    fn another_type_or_version_is_an_error() {
        let error = |object| PodProbeMarker::from_value(object).unwrap_err();
        assert!(error(json!({"apiVersion": "apps.kruise.io/v9"})).contains("v9"));
        let spec = json!({"apiVersion": "apps.kruise.io/v1alpha1", "spec": {"probes": 1}});
        assert!(!error(spec).is_empty());
    }
}
