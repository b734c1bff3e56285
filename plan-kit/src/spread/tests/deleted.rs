//! What deletions record.

use kruise_api::workloadspread::WorkloadSpread;
use serde_json::{Value, json};

use super::{at, counts, matched, named, spread};
use crate::spread::{Choice, GoingPod, assign, delete, initial};

/// A WorkloadSpread whose only limited subset is full of `web-0`, which was created at 0.
fn full() -> WorkloadSpread {
    let mut web = spread(&[("a", json!(1)), ("b", Value::Null)]);
    let Ok(Choice::Counted(_, status)) = assign(&web, &named("web-0"), None, at(0)) else {
        panic!("not counted")
    };
    web.status = status;
    web
}

fn going(name: &str, created: i64) -> GoingPod<'_> {
    GoingPod {
        name,
        version: "versionIgnored",
        created: Some(at(created)),
    }
}

#[test]
fn a_deletion_is_recorded_once_and_frees_a_slot() {
    let mut web = full();
    let in_a = matched("a", "");
    web.status = delete(&web, &going("web-0", 0), &in_a, None, at(5)).unwrap();
    assert_eq!(counts(&web.status), ["a 1 + -web-0", "b -1 + -"]);
    for second in [5, 20] {
        assert_eq!(delete(&web, &going("web-0", 0), &in_a, None, at(second)), None);
    }
    // The controller is about to drop the entry. It lasts longer, and nothing more is free.
    web.status = delete(&web, &going("web-0", 0), &in_a, None, at(21)).unwrap();
    assert_eq!(counts(&web.status), ["a 1 + -web-0", "b -1 + -"]);
    assert_eq!(delete(&web, &going("web-0", 0), &in_a, None, at(36)), None);
}

#[test]
fn never_are_more_missing_than_the_limit() {
    let mut web = full();
    web.status = delete(&web, &going("web-0", 0), &matched("a", ""), None, at(5)).unwrap();
    web.status = delete(&web, &going("web-9", 0), &matched("a", ""), None, at(5)).unwrap();
    assert_eq!(counts(&web.status), ["a 1 + -web-0,web-9", "b -1 + -"]);
}

#[test]
fn a_surplus_pod_leaves_no_place_behind() {
    let with = |limit: Value, replicas| {
        let mut web = spread(&[("a", limit), ("b", Value::Null)]);
        web.status.versioned_subset_statuses =
            [("versionIgnored".to_owned(), initial(&web.spec, replicas).unwrap())].into();
        let subsets = web
            .status
            .versioned_subset_statuses
            .get_mut("versionIgnored")
            .unwrap();
        // The limit was 4 when these pods came.
        subsets[0].replicas = 4;
        subsets[0].missing_replicas = 0;
        web
    };
    for (limit, replicas) in [(json!(2), None), (json!("20%"), Some(10))] {
        let mut web = with(limit, replicas);
        for (pod, missing) in [("web-0", 0), ("web-1", 0), ("web-2", 1), ("web-3", 2)] {
            web.status = delete(&web, &going(pod, 0), &matched("a", ""), replicas, at(5)).unwrap();
            let subsets = &web.status.versioned_subset_statuses["versionIgnored"];
            assert_eq!(subsets[0].missing_replicas, missing, "{pod}");
            assert!(subsets[0].deleting_pods.get(pod).is_some());
        }
    }
}

#[test]
fn nothing_is_recorded_where_nothing_is_counted() {
    let web = full();
    for subset in ["b", "gone"] {
        assert_eq!(
            delete(&web, &going("web-1", 0), &matched(subset, ""), None, at(5)),
            None
        );
    }
    let other = GoingPod {
        version: "5f",
        ..going("web-0", 0)
    };
    assert_eq!(delete(&web, &other, &matched("a", ""), None, at(5)), None);
}

#[test]
fn a_pod_of_a_generated_name_is_no_longer_awaited() {
    let mut web = spread(&[("a", json!(2))]);
    let Ok(Choice::Counted(in_a, status)) = assign(&web, &named(""), None, at(0)) else {
        panic!("not counted")
    };
    web.status = status;
    assert_eq!(counts(&web.status), ["a 1 +request -"]);
    web.status = delete(&web, &going("web-x", 0), &in_a, None, at(1)).unwrap();
    assert_eq!(counts(&web.status), ["a 2 + -web-x"]);
}

#[test]
fn the_successor_of_a_pod_neither_inherits_its_slot_nor_goes_for_free() {
    let mut web = full();
    web.status = delete(&web, &going("web-0", 0), &matched("a", ""), None, at(5)).unwrap();
    // Somebody else takes the slot first.
    let Ok(Choice::Counted(_, status)) = assign(&web, &named("web-1"), None, at(6)) else {
        panic!("not counted")
    };
    web.status = status;
    assert_eq!(
        assign(&web, &named("web-0"), None, at(7)),
        Ok(Choice::Free(matched("b", "")))
    );
    let mut web = full();
    web.status = delete(&web, &going("web-0", 0), &matched("a", ""), None, at(5)).unwrap();
    let Ok(Choice::Counted(_, status)) = assign(&web, &named("web-0"), None, at(6)) else {
        panic!("not counted")
    };
    web.status = status;
    assert_eq!(counts(&web.status), ["a 0 +web-0 -", "b -1 + -"]);
    // Its own deletion is recorded, though one of its name was.
    let mut web = full();
    web.status = delete(&web, &going("web-0", 0), &matched("a", ""), None, at(5)).unwrap();
    web.status
        .versioned_subset_statuses
        .get_mut("versionIgnored")
        .unwrap()[0]
        .missing_replicas = 0;
    let after = delete(&web, &going("web-0", 6), &matched("a", ""), None, at(9)).unwrap();
    assert_eq!(counts(&after), ["a 1 + -web-0", "b -1 + -"]);
}

#[test]
fn a_pod_that_goes_before_it_was_counted_was_there() {
    // The limit was 4 when these pods came, of which the controller has not seen the last one.
    let mut web = full();
    web.spec.subsets[0].max_replicas = Some(go_compat::IntOrString::Int(2));
    let subsets = web
        .status
        .versioned_subset_statuses
        .get_mut("versionIgnored")
        .unwrap();
    subsets[0].replicas = 3;
    subsets[0].missing_replicas = 0;
    assert_eq!(counts(&web.status), ["a 0 +web-0 -", "b -1 + -"]);
    for (pod, missing) in [("web-0", 0), ("web-1", 0), ("web-2", 1), ("web-3", 2)] {
        web.status = delete(&web, &going(pod, 0), &matched("a", ""), None, at(5)).unwrap();
        let subsets = &web.status.versioned_subset_statuses["versionIgnored"];
        assert_eq!(subsets[0].missing_replicas, missing, "{pod}");
    }
}

#[test]
fn a_pod_that_comes_back_under_its_name_is_counted_once() {
    let mut web = full();
    for second in [5, 15, 25] {
        web.status = delete(&web, &going("web-0", second), &matched("a", ""), None, at(second)).unwrap();
        assert_eq!(counts(&web.status), ["a 1 + -web-0", "b -1 + -"], "{second}");
        let Ok(Choice::Counted(_, status)) = assign(&web, &named("web-0"), None, at(second + 1)) else {
            panic!("not counted")
        };
        web.status = status;
    }
}
