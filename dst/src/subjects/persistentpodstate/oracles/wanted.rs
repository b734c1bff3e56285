//! What a PersistentPodState says, and what annotations of a workload say of one.

use crate::rules::prelude::*;

/// What is recorded of pods, and what new ones get of it.
#[derive(Debug, Default, PartialEq)]
pub struct Wanted<'a> {
    /// Keys of labels that the new node of a pod must have.
    pub required: Vec<&'a str>,
    /// Keys of labels that it should have, each list with its weight.
    pub preferred: Vec<(i64, Vec<&'a str>)>,
    /// Keys of annotations that are recorded.
    pub annotations: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    /// What its specification says.
    pub fn of(state: &'a Object) -> Self {
        let spec = state.spec();
        let keys = |of: &'a Value| texts(&of["keys"]).collect();
        let preferred = items(&spec["preferredPersistentTopology"]);
        let annotations = items(&spec["persistentPodAnnotations"]);
        Self {
            required: keys(&spec["requiredPersistentTopology"]),
            preferred: preferred
                .map(|one| (number(&one["weight"]), keys(&one["preference"])))
                .collect(),
            annotations: annotations.filter_map(|one| one["key"].as_str()).collect(),
        }
    }

    /// What a workload asks for, if it does.
    pub fn by(set: &'a Object) -> Option<Self> {
        let annotations = set.annotations();
        let keys = |name: &str| -> Vec<&'a str> {
            let text = text(&annotations[name]);
            text.split(',').filter(|key| !key.is_empty()).collect()
        };
        let asks = annotations["kruise.io/auto-generate-persistent-pod-state"] == "true";
        let preferred = Some(keys("kruise.io/preferred-persistent-topology"));
        let preferred = preferred.filter(|keys| !keys.is_empty()).map(|keys| (100, keys));
        let wanted = Self {
            required: keys("kruise.io/required-persistent-topology"),
            preferred: preferred.into_iter().collect(),
            annotations: keys("kruise.io/persistent-pod-annotations"),
        };
        let has_topology = !wanted.required.is_empty() || !wanted.preferred.is_empty();
        (asks && !set.is_going() && has_topology).then_some(wanted)
    }

    /// Keys of the labels that are recorded.
    pub fn labels(&self) -> Vec<&'a str> {
        let preferred = self.preferred.iter().flat_map(|(_, keys)| keys);
        let mut all: Vec<&str> = self.required.iter().chain(preferred).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Object::new(value.into(), Bytes::new(), false, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn annotations_that_ask_say_the_same_as_the_specification() {
        let annotations = |change: &str, to: Value| {
            let mut annotations = json!({
                "kruise.io/auto-generate-persistent-pod-state": "true",
                "kruise.io/required-persistent-topology": "zone",
                "kruise.io/preferred-persistent-topology": "host,zone",
                "kruise.io/persistent-pod-annotations": "team",
            });
            annotations[format!("kruise.io/{change}")] = to;
            object(json!({"metadata": {"annotations": annotations}}))
        };
        let state = object(json!({"spec": {
            "requiredPersistentTopology": {"keys": ["zone"]},
            "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": ["host", "zone"]}}],
            "persistentPodAnnotations": [{"key": "team"}],
        }}));
        let wanted = Wanted::of(&state);
        assert_eq!(Wanted::by(&annotations("other", json!("1"))), Some(wanted));
        assert_eq!(Wanted::of(&state).labels(), ["host", "zone"]);
        let silent = annotations("auto-generate-persistent-pod-state", json!("false"));
        assert_eq!(Wanted::by(&silent), None);
        let without = annotations("preferred-persistent-topology", Value::Null);
        let preferred = Wanted::by(&without).map(|wanted| wanted.preferred.len());
        assert_eq!(preferred, Some(0));
    }
}
