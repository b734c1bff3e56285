use proptest::prelude::*;
use serde_json::{Value, json};

use super::{V1ALPHA1, V1BETA1, to_v1alpha1, to_v1beta1};

fn there(mut object: Value) -> Value {
    to_v1beta1(&mut object).unwrap();
    object
}

fn back(mut object: Value) -> Value {
    to_v1alpha1(&mut object).unwrap();
    object
}

fn older(spec: Value) -> Value {
    json!({"apiVersion": V1ALPHA1, "kind": "CloneSet", "metadata": {"name": "web"}, "spec": spec})
}

fn newer(spec: Value) -> Value {
    json!({"apiVersion": V1BETA1, "kind": "CloneSet", "metadata": {"name": "web"}, "spec": spec})
}

#[test]
fn claims_are_reused_by_default_in_the_older_version_and_not_in_the_newer() {
    assert_eq!(
        there(older(json!({})))["spec"]["scaleStrategy"]["enablePVCReuse"],
        true
    );
    assert_eq!(
        back(newer(json!({})))["spec"]["scaleStrategy"]["disablePVCReuse"],
        true
    );
}

#[test]
fn types_become_policies_and_fields_move_into_the_rolling_update() {
    let strategy =
        json!({"type": "InPlaceIfPossible", "partition": 3, "maxUnavailable": "50%", "newer": {"x": 1}});
    let converted = there(older(json!({"updateStrategy": strategy})));
    assert_eq!(
        converted["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "InPlaceIfPossible", "partition": 3, "maxUnavailable": "50%", "newer": {"x": 1}}})
    );
    assert_eq!(back(converted)["spec"]["updateStrategy"], strategy);
}

#[test]
fn on_delete_keeps_its_fields_and_its_policy() {
    let spec = json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {
        "podUpdatePolicy": "InPlaceOnly", "partition": 1, "maxUnavailable": 2}},
        "scaleStrategy": {"enablePVCReuse": false}});
    let converted = back(newer(spec.clone()));
    assert_eq!(
        converted["spec"]["updateStrategy"],
        json!({"type": "OnDelete", "partition": 1, "maxUnavailable": 2})
    );
    assert_eq!(there(converted), newer(spec));
}

#[test]
fn an_edit_through_the_older_version_wins_over_what_was_kept() {
    let spec =
        json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}});
    let mut edited = back(newer(spec));
    edited["spec"]["updateStrategy"]["type"] = json!("ReCreate");
    let converted = there(edited);
    assert_eq!(
        converted["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"],
        "ReCreate"
    );
    assert!(converted["metadata"].get("annotations").is_none());
}

#[test]
fn the_exclusion_label_follows_the_field() {
    let on = newer(json!({"scaleStrategy": {"enablePVCReuse": true, "excludePreparingDelete": true}}));
    let label = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete";
    let converted = back(on);
    assert_eq!(converted["metadata"]["labels"][label], "true");
    let mut stored = there(converted);
    assert_eq!(stored["spec"]["scaleStrategy"]["excludePreparingDelete"], true);
    stored["spec"]["scaleStrategy"]["excludePreparingDelete"] = json!(false);
    assert!(back(stored)["metadata"].get("labels").is_none());
}

#[test]
fn predownload_annotations_become_fields_and_text_that_is_no_number_is_not_lost() {
    let mut object =
        older(json!({"updateStrategy": {"type": "InPlaceOnly"}, "scaleStrategy": {"disablePVCReuse": true}}));
    object["metadata"]["annotations"] = json!({
        "apps.kruise.io/image-predownload-parallelism": "20%",
        "apps.kruise.io/image-predownload-timeout-seconds": "soon",
        "apps.kruise.io/image-predownload-min-updated-ready-pods": "2",
    });
    let converted = there(object.clone());
    assert_eq!(
        converted["spec"]["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"],
        json!({"imagePreDownloadParallelism": "20%", "imagePreDownloadMinUpdatedReadyPods": 2})
    );
    let mut returned = back(converted);
    returned["spec"]["updateStrategy"]
        .as_object_mut()
        .unwrap()
        .remove("inPlaceUpdateStrategy");
    assert_eq!(returned, object);
}

#[test]
fn a_field_taken_away_in_the_newer_version_does_not_come_back() {
    let in_place = json!({"imagePreDownloadParallelism": 2});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "inPlaceUpdateStrategy": in_place}});
    let mut stored = there(back(newer(json!({"updateStrategy": strategy}))));
    stored["spec"]["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"] = json!({});
    assert!(back(stored)["metadata"].get("annotations").is_none());
}

#[test]
fn fields_that_the_older_version_stores_and_ignores_come_back() {
    let spec = json!({"updateStrategy": {"type": "InPlaceOnly", "inPlaceUpdateStrategy": {
        "gracePeriodSeconds": 3, "imagePreDownloadParallelism": 7}}, "scaleStrategy": {"disablePVCReuse": false}});
    let converted = there(older(spec.clone()));
    let in_place = &converted["spec"]["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"];
    assert_eq!(*in_place, json!({"gracePeriodSeconds": 3}));
    assert_eq!(back(converted), older(spec));
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(0)),
        Just(json!(3)),
        Just(json!("20%")),
        Just(json!(true)),
        Just(json!({"a": 1})),
        Just(json!(["x"])),
    ]
}

fn members(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    proptest::collection::btree_map(proptest::sample::select(names), leaf(), 0..4).prop_map(|map| json!(map))
}

const FIELDS: &[&str] = &[
    "partition",
    "maxUnavailable",
    "maxSurge",
    "paused",
    "priorityStrategy",
    "unknownField",
];

proptest! {
    #[test]
    fn no_field_of_the_older_version_is_lost(
        kind in proptest::sample::select(vec!["ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"]),
        fields in members(FIELDS), scale in members(&["podsToDelete", "maxUnavailable", "newField"]), disabled: bool,
        spec in members(&["replicas", "template", "lifecycle", "unknown"]),
    ) {
        let mut object = older(spec);
        object["spec"]["updateStrategy"] = fields;
        object["spec"]["updateStrategy"]["type"] = json!(kind);
        object["spec"]["scaleStrategy"] = scale;
        object["spec"]["scaleStrategy"]["disablePVCReuse"] = json!(disabled);
        prop_assert_eq!(back(there(object.clone())), object);
    }

    #[test]
    fn no_field_of_the_newer_version_is_lost(
        kind in proptest::sample::select(vec!["RollingUpdate", "OnDelete"]),
        policy in proptest::sample::select(vec!["ReCreate", "InPlaceIfPossible", "InPlaceOnly"]),
        fields in members(FIELDS), enabled: bool, exclude: bool,
        spec in members(&["replicas", "template", "lifecycle", "unknown"]),
    ) {
        let mut object = newer(spec);
        object["spec"]["updateStrategy"] = json!({"type": kind, "rollingUpdate": fields});
        object["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] = json!(policy);
        object["spec"]["scaleStrategy"] = json!({"enablePVCReuse": enabled});
        if exclude {
            object["spec"]["scaleStrategy"]["excludePreparingDelete"] = json!(true);
        }
        let mut returned = there(back(object.clone()));
        // The label is the form of the older version, and stays like all metadata.
        returned["metadata"].as_object_mut().unwrap().remove("labels");
        prop_assert_eq!(returned, object);
    }

    #[test]
    fn no_shape_of_input_panics(spec in leaf(), strategy in leaf(), scale in leaf(), metadata in leaf()) {
        for version in [V1ALPHA1, V1BETA1] {
            for object in [
                json!({"apiVersion": version, "metadata": metadata, "spec": spec}),
                json!({"apiVersion": version, "metadata": {"annotations": metadata, "labels": scale},
                       "spec": {"updateStrategy": strategy, "scaleStrategy": scale}}),
            ] {
                let _ = (to_v1beta1(&mut object.clone()), to_v1alpha1(&mut object.clone()));
            }
        }
    }
}
