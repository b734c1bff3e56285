use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::*;

/// As many as make three hundred objects of OpenKruise.
const NAMESPACES: usize = 16;

fn fleets() -> Vec<(Fleet, Timestamp)> {
    let now = "2030-01-02T03:04:05Z".parse().unwrap();
    FLEETS
        .into_iter()
        .map(|version| (Fleet::new(version, NAMESPACES, now), now))
        .collect()
}

fn at<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[test]
fn a_fleet_has_objects_of_all_kinds_and_each_uid_and_name_once() {
    for (fleet, _) in fleets() {
        let (objects, of_kinds) = fleet.counted();
        assert!(objects >= 300, "{objects}");
        assert_eq!(of_kinds, kinds::ALL.len());
        let uids: BTreeSet<&str> = fleet
            .objects
            .iter()
            .map(|object| at(object, "/metadata/uid"))
            .collect();
        assert_eq!(uids.len(), fleet.objects.len());
        let name = |object| format!("{}/{}", collection(object), at(object, "/metadata/name"));
        let names: BTreeSet<String> = fleet.objects.iter().map(name).collect();
        assert_eq!(names.len(), fleet.objects.len());
    }
}

#[test]
fn every_owner_is_there_and_has_the_kind_and_name_of_the_reference() {
    for (fleet, _) in fleets() {
        let mut by_uid = BTreeMap::new();
        for object in &fleet.objects {
            let references = object["metadata"]["ownerReferences"].as_array();
            for owner in references.into_iter().flatten() {
                let there: Option<&&Value> = by_uid.get(at(owner, "/uid"));
                let there = there.unwrap_or_else(|| panic!("not before what it owns: {owner}"));
                for (of_owner, of_reference) in [("/kind", "/kind"), ("/metadata/name", "/name")] {
                    assert_eq!(at(there, of_owner), at(owner, of_reference));
                }
                let namespace = at(there, "/metadata/namespace");
                assert!(
                    ["", at(object, "/metadata/namespace")].contains(&namespace),
                    "{owner}"
                );
            }
            by_uid.insert(at(object, "/metadata/uid"), object);
        }
    }
}

#[test]
fn sidecars_belong_to_the_set_of_their_own_namespace() {
    for (fleet, _) in fleets() {
        let mut matched = 0;
        for set in fleet.of_kind("apps.kruise.io", "SidecarSet") {
            let selected = &set["spec"]["selector"]["matchLabels"]["inject"];
            for pod in fleet.of_kind("", "Pod") {
                let is_selected = pod["metadata"]["labels"]["inject"] == *selected;
                let annotations = &pod["metadata"]["annotations"];
                let has_list = annotations["kruise.io/sidecarset-injected-list"] == set["metadata"]["name"];
                assert_eq!(is_selected, has_list);
                if is_selected {
                    matched += 1;
                    let hashes: Value =
                        serde_json::from_str(at(annotations, "/kruise.io~1sidecarset-hash")).unwrap();
                    let of_set = &hashes[at(set, "/metadata/name")];
                    assert_eq!(of_set["sidecarSetName"], set["metadata"]["name"]);
                }
            }
        }
        assert_eq!(matched, 2 * NAMESPACES);
    }
}

#[test]
fn the_newest_time_is_a_minute_ago_and_nothing_is_left_in_the_namespace_of_the_fixtures() {
    for (fleet, now) in fleets() {
        let all = json!(fleet.objects).to_string();
        assert!(all.contains("2030-01-02T03:03:05Z") && !all.contains("2026-"));
        let later = now - jiff::SignedDuration::from_secs(59);
        assert!(!all.contains(&crate::text(later)));
        let namespaces: BTreeSet<&str> = fleet
            .objects
            .iter()
            .map(|object| at(object, "/metadata/namespace"))
            .collect();
        assert!(!namespaces.contains("default"), "{namespaces:?}");
    }
}

#[test]
fn half_of_the_namespaces_are_in_the_middle_of_a_rollout() {
    for (fleet, _) in fleets() {
        let canaries = fleet
            .of_kind("apps.kruise.io", "CloneSet")
            .filter(|set| at(set, "/metadata/name") == "canary");
        let is_settled =
            |set: &&Value| at(set, "/status/currentRevision") == at(set, "/status/updateRevision");
        assert_eq!(canaries.filter(is_settled).count(), NAMESPACES / 2);
    }
}
