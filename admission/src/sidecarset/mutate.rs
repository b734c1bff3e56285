//! Defaults of a SidecarSet and the hashes of its containers, as a patch.

use kruise_plan_kit::sidecars::{hashes, names};
use serde_json::{Map, Value};

use crate::{Answer, Operation, Request};

/// Fills in what the author left out, and writes both hashes over whatever stands there.
pub fn mutate(request: &Request) -> Answer {
    if !request.sub_resource.is_empty() || !matches!(request.operation, Operation::Create | Operation::Update)
    {
        return Answer::ALLOW;
    }
    if let Err(answer) = super::known(request) {
        return answer;
    }
    let mut object = request.object.clone();
    super::complete(&mut object);
    let patch = json_patch::diff(&request.object, &object);
    match (!patch.is_empty())
        .then(|| serde_json::to_value(&patch))
        .transpose()
    {
        Ok(patch) => Answer::Allow {
            patch,
            warnings: Vec::new(),
        },
        Err(error) => Answer::undecodable(error),
    }
}

/// Writes the hashes of the containers into the annotations.
pub(super) fn stamp(set: &mut Value) {
    let found = hashes(set.get("spec").unwrap_or(&Value::Null));
    let Some(members) = set.as_object_mut() else {
        return;
    };
    let Some(metadata) = object(members, "metadata") else {
        return;
    };
    let Some(annotations) = object(metadata, "annotations") else {
        return;
    };
    annotations.insert(names::HASH.to_owned(), found.full.into());
    annotations.insert(names::HASH_WITHOUT_IMAGE.to_owned(), found.without_image.into());
}

/// A member that is an object, made if it is absent.
fn object<'a>(parent: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    let member = parent.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Map::new().into();
    }
    member.as_object_mut()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::Options;
    use crate::pod::{Known, Outcome};

    fn mutated(object: &Value) -> Value {
        let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
        let request = Request::from_review(json!({
            "kind": {"group": "apps.kruise.io", "version": version, "kind": "SidecarSet"},
            "operation": "CREATE", "object": object,
        }));
        let Answer::Allow { patch, .. } = mutate(&request.unwrap()) else {
            panic!("denied");
        };
        let mut after = object.clone();
        if let Some(patch) = patch {
            let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
            json_patch::patch(&mut after, &patch).unwrap();
        }
        after
    }

    /// What three versions stored, in each version served.
    fn stored() -> Vec<Value> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
        let mut sets = Vec::new();
        for version in ["1.8.4", "1.9.0", "main"] {
            for file in [
                "rest-sidecarsets.json",
                "mid-sidecarsets.json",
                "rest-sidecarsets.v1alpha1.apps.kruise.io.json",
            ] {
                let text = std::fs::read_to_string(root.join(version).join(file)).unwrap();
                sets.extend(serde_json::from_str::<Vec<Value>>(&text).unwrap());
            }
        }
        sets
    }

    /// Without the empty structs that Go writes and nobody reads.
    fn without_empty(mut spec: Value) -> Value {
        spec.as_object_mut()
            .unwrap()
            .retain(|_, value| value != &json!({}) && value != &json!([]));
        for list in ["containers", "initContainers"] {
            for container in spec[list].as_array_mut().unwrap() {
                container.as_object_mut().unwrap().remove("resources");
            }
        }
        spec
    }

    #[test]
    fn a_set_as_applied_becomes_what_openkruise_stored() {
        for set in stored().iter().filter(|set| set["metadata"]["generation"] == 1) {
            let text =
                set["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].as_str();
            let applied: Value = serde_json::from_str(text.unwrap()).unwrap();
            let found = mutated(&applied);
            assert_eq!(
                without_empty(found["spec"].clone()),
                without_empty(set["spec"].clone())
            );
            for key in [names::HASH, names::HASH_WITHOUT_IMAGE] {
                assert_eq!(
                    found["metadata"]["annotations"][key],
                    set["metadata"]["annotations"][key]
                );
            }
        }
    }

    #[test]
    fn stored_sets_are_left_as_they_are_but_for_forged_hashes() {
        for set in stored() {
            assert_eq!(mutated(&set), set);
            let mut forged = set.clone();
            forged["metadata"]["annotations"][names::HASH] = "mine".into();
            assert_eq!(mutated(&forged), set);
        }
    }

    #[test]
    fn what_openkruise_does_not_know_survives_and_what_it_does_not_default_stays() {
        let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "containers": [{
                "name": "c", "image": "c", "newer": 1,
                "startupProbe": {"httpGet": {"port": 80}}, "livenessProbe": {"grpc": {"port": 1}},
                "transferEnv": [{"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}, {"sourceContainerNameFrom": {}}],
            }],
            "volumes": [{"name": "v"}, {"name": "w", "newerSource": {}}],
            "patchPodMetadata": [{"annotations": {"k": "v"}}],
            "injectionStrategy": {"revision": {"customVersion": "v1"}},
        }});
        let found = mutated(&set);
        let container = &found["spec"]["containers"][0];
        assert_eq!(container["newer"], 1);
        assert_eq!(container["imagePullPolicy"], "Always");
        assert_eq!(container["startupProbe"], json!({"httpGet": {"port": 80}}));
        assert_eq!(container["livenessProbe"]["grpc"], json!({"port": 1}));
        assert_eq!(container["livenessProbe"]["periodSeconds"], 10);
        assert_eq!(
            container["transferEnv"][0]["sourceContainerNameFrom"]["fieldRef"]["apiVersion"],
            "v1"
        );
        assert_eq!(
            container["transferEnv"][1],
            json!({"sourceContainerNameFrom": {}})
        );
        assert_eq!(
            found["spec"]["volumes"],
            json!([{"name": "v", "emptyDir": {}}, {"name": "w", "newerSource": {}}])
        );
        assert_eq!(found["spec"]["patchPodMetadata"][0]["patchPolicy"], "Retain");
        assert_eq!(found["spec"]["injectionStrategy"]["revision"]["policy"], "Always");
        assert_eq!(
            found["spec"]["updateStrategy"],
            json!({"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1})
        );
        assert_eq!(mutated(&found), found);
    }

    #[test]
    fn what_is_stored_without_a_specification_is_left_alone_and_none_is_taken_away() {
        let bare = json!({"metadata": {"name": "s", "finalizers": []}});
        let whole = json!({"metadata": {"name": "s"}, "spec": {"containers": []}});
        for (old, taken) in [(&bare, true), (&whole, false)] {
            let request = Request::from_review(json!({
                "kind": {"version": "v1beta1", "kind": "SidecarSet"}, "operation": "UPDATE", "object": bare,
                "oldObject": old,
            }));
            let request = request.unwrap();
            let validated =
                crate::sidecarset::validate::validate(&request, Options::DEFAULT, &Known::default());
            let Outcome::Answer(validated) = validated else {
                panic!("{validated:?}")
            };
            for answer in [mutate(&request), validated] {
                let refused = matches!(answer, Answer::Deny { code: 400, .. });
                assert!(
                    if taken { answer == Answer::ALLOW } else { refused },
                    "{answer:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_sidecarset_is_turned_down() {
        for (kind, version, object) in [
            ("SidecarSet", "v9", json!({"spec": {}})),
            ("Other", "v1beta1", json!({"spec": {}})),
            ("SidecarSet", "v1beta1", json!({"spec": 1})),
        ] {
            let request = Request::from_review(
                json!({"kind": {"version": version, "kind": kind}, "operation": "CREATE", "object": object}),
            );
            let answer = mutate(&request.unwrap());
            assert!(matches!(answer, Answer::Deny { code: 400, .. }), "{answer:?}");
        }
    }
}
