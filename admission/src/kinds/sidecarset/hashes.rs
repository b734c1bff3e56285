//! Hashes of the containers of a SidecarSet, which it carries as annotations.

use kruise_plan_kit::sidecars::{hashes, names};
use serde_json::Value;

use crate::json::made;

/// Writes both hashes over whatever stands there.
pub(super) fn write(set: &mut Value) {
    let found = hashes(set.get("spec").unwrap_or(&Value::Null));
    let annotations = made(set, "metadata").and_then(|metadata| made(metadata, "annotations"));
    if let Some(Value::Object(annotations)) = annotations {
        annotations.insert(names::HASH.to_owned(), found.full.into());
        annotations.insert(names::HASH_WITHOUT_IMAGE.to_owned(), found.without_image.into());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::WEBHOOKS;
    use super::*;
    use crate::kinds::testing::{decided, quiet};
    use crate::table::Phase;
    use crate::{Options, Request, Response};

    fn mutate(request: &Request) -> Response {
        decided(&WEBHOOKS, Phase::Mutating, request, Options::DEFAULT, &quiet)
    }

    fn mutated(object: &Value) -> Value {
        let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
        let request = Request::from_review(json!({
            "kind": {"group": "apps.kruise.io", "version": version, "kind": "SidecarSet"},
            "operation": "CREATE", "object": object,
        }));
        mutate(&request.unwrap()).applied_to(object)
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
        assert!(!sets.is_empty(), "nothing is stored");
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
            let validated = decided(
                &WEBHOOKS,
                Phase::Validating,
                &request,
                Options::DEFAULT,
                &|lookup| panic!("{lookup:?}"),
            );
            for answer in [mutate(&request), validated] {
                let refused = matches!(answer, Response::Deny { code: 400, .. });
                assert!(
                    if taken { answer == Response::ALLOW } else { refused },
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
            assert!(matches!(answer, Response::Deny { code: 400, .. }), "{answer:?}");
        }
    }
}
