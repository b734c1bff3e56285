//! What holds for every kind in the table, on what people write and what OpenKruise stored.

use std::path::{Path, PathBuf};

use go_compat::pod_template::{canonical_claim, canonical_pod_template};
use kruise_api::convert::convert_as;
use serde_json::{Map, Value, json};

use super::ALL;
use super::testing::{Case, OPTIONS, case, decided, quiet, webhooks_of};
use crate::table::Phase;
use crate::{Request, Response};

/// Reviews in a cluster where nothing is in the way.
fn mutated(request: &Request) -> Response {
    let webhooks = webhooks_of(&request.kind);
    decided(webhooks, Phase::Mutating, request, OPTIONS, &quiet)
}

fn validated(request: &Request) -> Response {
    let webhooks = webhooks_of(&request.kind);
    decided(webhooks, Phase::Validating, request, OPTIONS, &quiet)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn kind_of(object: &Value) -> &'static str {
    webhooks_of(object["kind"].as_str().unwrap()).kind.kind
}

fn reviewed(object: &Value) -> Case {
    case(kind_of(object), || Value::Null)
}

/// The sample of each kind and version.
fn samples() -> Vec<Value> {
    super::testing::samples().map(|(_, sample)| sample).collect()
}

/// What three versions of OpenKruise stored of our kinds, with the manifest it was made of. CloneSets and
/// SidecarSets are compared member by member in their folders.
fn stored() -> Vec<(Value, Value)> {
    let mut all = Vec::new();
    for version in ["1.8.4", "1.9.0", "main"] {
        let folder = std::fs::read_dir(root().join("fixtures/upstream").join(version)).unwrap();
        let mut files: Vec<PathBuf> = folder.map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files
            .iter()
            .filter(|file| !file.to_string_lossy().contains(".raw."))
        {
            let text = std::fs::read_to_string(file).unwrap();
            for object in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
                let kruise = object["apiVersion"].as_str().unwrap().contains("kruise.io/");
                let is_elsewhere = ["CloneSet", "SidecarSet"]
                    .iter()
                    .any(|kind| object["kind"] == *kind);
                if kruise && !is_elsewhere && ALL.iter().any(|one| object["kind"] == one.kind.kind) {
                    let applied = &object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
                    // what a controller made has none
                    let applied = applied.as_str().map(|text| serde_json::from_str(text).unwrap());
                    let applied: Value = applied.unwrap_or_default();
                    all.push((object, applied));
                }
            }
        }
    }
    all
}

/// Everything that `part` says is also said by `whole`.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(name, value)| whole.get(name).is_some_and(|found| is_part(value, found))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(a, b)| is_part(a, b))
        }
        _ => part == whole,
    }
}

/// Templates and claims as Go reads them, and no members that are empty.
fn meaning(value: &Value) -> Value {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(list) => return list.iter().map(meaning).collect(),
        other => return other.clone(),
    };
    let is_empty =
        |value: &Value| value.is_null() || value == "" || value.as_object().is_some_and(Map::is_empty);
    let read = |(name, value): (&String, &Value)| {
        let read = match (name.as_str(), value) {
            ("template", value) if value["spec"]["containers"].is_array() => canonical_pod_template(value),
            ("volumeClaimTemplates", Value::Array(list)) => list.iter().map(canonical_claim).collect(),
            (_, value) => meaning(value),
        };
        (name.clone(), read)
    };
    let members = members.iter().map(read).filter(|(_, value)| !is_empty(value));
    Value::Object(members.collect())
}

#[test]
fn samples_pass_and_only_gain() {
    for sample in samples() {
        let case = reviewed(&sample);
        let found = case.mutated_object("CREATE", &sample, &Value::Null);
        assert!(is_part(&sample, &found), "{sample}");
        // what only the system fills in cannot be given
        let given = if webhooks_of(kind_of(&sample)).validating.is_some() {
            &found
        } else {
            &sample
        };
        assert_eq!(case.refusal("CREATE", given, &Value::Null), None, "{sample}");
    }
}

#[test]
fn samples_apply_over_each_other() {
    let key = |object: &Value| (object["kind"].clone(), object["metadata"]["name"].clone());
    let mut pairs = 0;
    for sample in samples() {
        let case = reviewed(&sample);
        let stored = case.mutated_object("CREATE", &sample, &Value::Null);
        for applied in samples().into_iter().filter(|other| key(other) == key(&stored)) {
            pairs += 1;
            let mut old = stored.clone();
            let version = applied["apiVersion"].as_str().unwrap();
            convert_as(webhooks_of(kind_of(&stored)).kind, &mut old, version).unwrap();
            let mut new = old.clone();
            // as kubectl: maps are merged, lists are replaced
            json_patch::merge(&mut new["spec"], &applied["spec"]);
            let removed =
                |name: &&String| applied["spec"].get(*name).is_none() && sample["spec"].get(*name).is_some();
            let gone: Vec<String> = new["spec"]
                .as_object()
                .unwrap()
                .keys()
                .filter(removed)
                .cloned()
                .collect();
            new["spec"]
                .as_object_mut()
                .unwrap()
                .retain(|name, _| !gone.contains(name));
            let new = case.mutated_object("UPDATE", &new, &old);
            assert_eq!(case.refusal("UPDATE", &new, &old), None, "{applied}");
        }
    }
    assert!(pairs > 50, "{pairs}");
}

#[test]
fn manifests_become_what_openkruise_stored() {
    let mut compared = 0;
    for (object, applied) in stored() {
        if applied["apiVersion"] != object["apiVersion"] || object["metadata"]["generation"] != 1 {
            continue;
        }
        compared += 1;
        let case = reviewed(&object);
        let found = case.mutated_object("CREATE", &applied, &Value::Null);
        assert_eq!(
            meaning(&found["spec"]),
            meaning(&object["spec"]),
            "{}",
            object["kind"]
        );
        assert_eq!(case.refusal("CREATE", &found, &Value::Null), None);
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn what_openkruise_stored_is_left_alone_and_stays_writable() {
    let stored = stored();
    assert!(stored.len() >= 30, "{}", stored.len());
    for (object, _) in stored {
        let case = reviewed(&object);
        assert_eq!(case.mutated_object("UPDATE", &object, &object), object);
        let mut labelled = object.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(case.refusal("UPDATE", &labelled, &object), None, "{object}");
    }
}

#[test]
fn members_that_are_not_known_survive() {
    for mut sample in samples() {
        let case = reviewed(&sample);
        sample["spec"]["newerThanUs"] = json!({"a": [1]});
        sample["newerThanUs"] = json!(true);
        let found = case.mutated_object("CREATE", &sample, &Value::Null);
        assert_eq!(found["spec"]["newerThanUs"], json!({"a": [1]}));
        assert_eq!(found["newerThanUs"], true);
    }
}

#[test]
fn nonsense_is_answered_and_never_a_panic() {
    let nonsense = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!([1]),
        json!({}),
        json!({"a": null}),
    ];
    for sample in samples() {
        let case = reviewed(&sample);
        let names: Vec<String> = sample["spec"].as_object().unwrap().keys().cloned().collect();
        for value in &nonsense {
            for name in &names {
                let mut object = sample.clone();
                object["spec"][name] = value.clone();
                for (operation, old) in [("CREATE", &Value::Null), ("UPDATE", &sample)] {
                    let request = case.request(operation, &object, old);
                    let _ = mutated(&request);
                    let _ = validated(&request);
                }
            }
            let mut object = sample.clone();
            object["spec"] = value.clone();
            let answer = validated(&case.request("CREATE", &object, &Value::Null));
            let refused = matches!(answer, Response::Deny { code: 400, .. });
            assert!(refused || value.is_object(), "{object}");
        }
    }
}

#[test]
fn what_is_stored_without_a_specification_stays_writable_and_none_is_taken_away() {
    for sample in samples() {
        let case = reviewed(&sample);
        let mut bare = sample.clone();
        bare.as_object_mut().unwrap().remove("spec");
        let mut labelled = bare.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        for (old, taken) in [(&bare, true), (&sample, false)] {
            let request = case.request("UPDATE", &labelled, old);
            for answer in [mutated(&request), validated(&request)] {
                let refused = matches!(answer, Response::Deny { code: 400, .. });
                assert_eq!(refused, !taken, "{answer:?} {sample}");
                assert!(!taken || answer == Response::ALLOW, "{answer:?}");
            }
        }
    }
}

#[test]
fn other_kinds_versions_and_subresources_are_told_apart() {
    let review = |webhooks: &str, kind: &str, version: &str, sub_resource: &str| {
        let request = Request::from_review(json!({
            "kind": {"group": "apps.kruise.io", "version": version, "kind": kind},
            "operation": "CREATE", "subResource": sub_resource, "object": {"spec": {}},
        }));
        let webhooks = webhooks_of(webhooks);
        let request = request.unwrap();
        decided(webhooks, Phase::Validating, &request, OPTIONS, &quiet)
    };
    let scale = review("StatefulSet", "StatefulSet", "v1beta1", "scale");
    assert_eq!(scale, Response::ALLOW);
    for (webhooks, kind, version) in [
        ("StatefulSet", "StatefulSet", "v2"),
        ("PodProbeMarker", "PodProbeMarker", "v1beta1"),
        ("StatefulSet", "Deployment", "v1"),
        ("StatefulSet", "CloneSet", "v1beta1"),
    ] {
        let response = review(webhooks, kind, version, "");
        assert!(
            matches!(response, Response::Deny { code: 400, .. }),
            "{kind} {version}"
        );
    }
}
