//! Where new pods go.

use kruise_api::workloadspread::{SubsetCondition, WorkloadSpread};
use serde_json::{Value, json};

use super::{at, counts, matched, named, of_target, spread};
use crate::spread::{Choice, NewPod, assign, by_ordinal, status_patch};

/// Stores what is counted, as the webhook does. Returns the subset and whether anything was stored.
fn create(spread: &mut WorkloadSpread, pod: &NewPod<'_>, second: i64) -> Option<(String, bool)> {
    match assign(spread, pod, Some(10), at(second)).unwrap() {
        Choice::Nothing => None,
        Choice::Free(matched) => Some((matched.subset, false)),
        Choice::Counted(matched, status) => {
            spread.status = status;
            Some((matched.subset, true))
        }
    }
}

fn subsets_of(spread: &mut WorkloadSpread, pods: i32) -> Vec<String> {
    let create = |number| create(spread, &named(&format!("web-{number}")), 0);
    let found = (0..pods).map(create);
    found
        .map(|found| found.map_or("none".to_owned(), |(subset, _)| subset))
        .collect()
}

#[test]
fn six_pods_fill_two_subsets_of_three_in_their_order() {
    let mut web = spread(&[("a", json!(3)), ("b", json!(3))]);
    assert_eq!(subsets_of(&mut web, 7), ["a", "a", "a", "b", "b", "b", "none"]);
    assert_eq!(
        counts(&web.status),
        ["a 0 +web-0,web-1,web-2 -", "b 0 +web-3,web-4,web-5 -"]
    );
}

#[test]
fn what_a_limited_subset_cannot_take_goes_to_the_unlimited_one_without_a_write() {
    let mut web = spread(&[("a", json!(2)), ("b", Value::Null)]);
    assert_eq!(subsets_of(&mut web, 2), ["a", "a"]);
    for pod in ["web-2", "web-3", "web-4"] {
        assert_eq!(create(&mut web, &named(pod), 0), Some(("b".into(), false)));
    }
    assert_eq!(counts(&web.status), ["a 0 +web-0,web-1 -", "b -1 + -"]);
}

#[test]
fn one_subset_of_two_leaves_the_other_pods_alone() {
    let mut web = spread(&[("a", json!(2))]);
    assert_eq!(subsets_of(&mut web, 4), ["a", "a", "none", "none"]);
}

#[test]
fn a_create_that_is_made_again_keeps_its_subset_and_its_slot() {
    let mut web = spread(&[("a", json!(3)), ("b", json!(3))]);
    assert_eq!(create(&mut web, &named("web-0"), 0), Some(("a".into(), true)));
    assert_eq!(create(&mut web, &named("web-0"), 30), Some(("a".into(), false)));
    // The controller is about to drop the entry, which must last as long as this attempt may take.
    assert_eq!(create(&mut web, &named("web-0"), 31), Some(("a".into(), true)));
    assert_eq!(counts(&web.status), ["a 2 +web-0 -", "b 3 + -"]);
    let entry = web.status.versioned_subset_statuses["versionIgnored"][0]
        .creating_pods
        .get("web-0");
    assert_eq!(entry, Some(at(31)));
}

#[test]
fn a_pod_without_a_name_is_recorded_by_the_uid_that_its_annotation_has() {
    let mut web = spread(&[("a", json!(1)), ("b", Value::Null)]);
    let pod = |uid| NewPod { uid, ..named("") };
    let Ok(Choice::Counted(first, status)) = assign(&web, &pod("u1"), None, at(0)) else {
        panic!("not counted")
    };
    assert_eq!(first, matched("a", "u1"));
    web.status = status;
    assert_eq!(counts(&web.status), ["a 0 +u1 -", "b -1 + -"]);
    // The answer to the write was lost, and the review is made again.
    assert_eq!(
        assign(&web, &pod("u1"), None, at(1)),
        Ok(Choice::Free(matched("a", "u1")))
    );
    assert_eq!(
        assign(&web, &pod("u2"), None, at(1)),
        Ok(Choice::Free(matched("b", "")))
    );
}

#[test]
fn versions_are_counted_apart_and_a_new_one_fills_the_first_subset_first() {
    let mut web = of_target(
        "apps/v1",
        "Deployment",
        &json!({"subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b"}]}),
    );
    let pod = |name, version| NewPod {
        version,
        ..named(name)
    };
    for (name, version, subset) in [
        ("web-1", "5f", "a"),
        ("web-2", "5f", "b"),
        ("web-3", "6a", "a"),
        ("web-4", "6a", "b"),
    ] {
        let found = create(&mut web, &pod(name, version), 0);
        assert_eq!(found.map(|(subset, _)| subset).as_deref(), Some(subset), "{name}");
    }
}

#[test]
fn percentages_are_of_the_replicas_and_rounded_up() {
    let web = |limit: &str| spread(&[("a", json!(limit)), ("b", Value::Null)]);
    let mut half = web("35%");
    assert_eq!(subsets_of(&mut half, 5), ["a", "a", "a", "a", "b"]);
    assert!(assign(&web("30"), &named("web-0"), Some(10), at(0)).is_err());
    assert_eq!(
        assign(&web("30%"), &named("web-0"), None, at(0)),
        Ok(Choice::Free(matched("b", "")))
    );
}

#[test]
fn half_of_a_jobs_parallelism_goes_to_the_first_subset_and_the_rest_to_the_second() {
    let mut job = of_target(
        "batch/v1",
        "Job",
        &json!({"subsets": [{"name": "a", "maxReplicas": "50%"}, {"name": "b"}]}),
    );
    let mut subset = |name| match assign(&job, &named(name), Some(4), at(0)) {
        Ok(Choice::Counted(matched, status)) => {
            job.status = status;
            matched.subset
        }
        Ok(Choice::Free(matched)) => matched.subset,
        other => panic!("{other:?}"),
    };
    assert_eq!(["w", "x", "y", "z"].map(&mut subset), ["a", "a", "b", "b"]);
}

fn unschedulable() -> SubsetCondition {
    SubsetCondition {
        kind: "Schedulable".into(),
        status: "False".into(),
        ..SubsetCondition::default()
    }
}

#[test]
fn a_subset_that_cannot_be_scheduled_to_or_is_gone_takes_no_pod() {
    let mut web = spread(&[("a", json!(3)), ("b", Value::Null)]);
    create(&mut web, &named("web-0"), 0);
    let subsets = web
        .status
        .versioned_subset_statuses
        .get_mut("versionIgnored")
        .unwrap();
    subsets[0].conditions.push(unschedulable());
    assert_eq!(create(&mut web, &named("web-1"), 0), Some(("b".into(), false)));
    let subsets = web
        .status
        .versioned_subset_statuses
        .get_mut("versionIgnored")
        .unwrap();
    subsets[0].conditions.clear();
    web.spec.subsets.remove(0);
    assert_eq!(create(&mut web, &named("web-2"), 0), Some(("b".into(), false)));
}

#[test]
fn ordinals_of_a_statefulset_fill_the_subsets_one_after_the_other() {
    let mut web = of_target(
        "apps/v1",
        "StatefulSet",
        &json!({"subsets": [{"name": "a", "maxReplicas": 2}, {"name": "b", "maxReplicas": 2}, {"name": "c"}]}),
    );
    let subset = |web: &WorkloadSpread, pod| by_ordinal(web, pod).map(|subset| subset.name.clone());
    let all = ["web-0", "web-1", "web-2", "web-3", "web-4", "web-2147483647"];
    let found = all.map(|pod| subset(&web, pod).unwrap_or_default());
    assert_eq!(found, ["a", "a", "b", "b", "c", "c"]);
    for pod in ["web", "web-x", ""] {
        assert_eq!(subset(&web, pod), None, "{pod}");
    }
    web.status.subset_statuses = vec![kruise_api::workloadspread::SubsetStatus {
        name: "a".into(),
        conditions: vec![unschedulable()],
        ..Default::default()
    }];
    let found = all.map(|pod| subset(&web, pod).unwrap_or_default());
    assert_eq!(found, ["b", "b", "c", "c", "c", "c"]);
    web.spec.subsets.truncate(2);
    assert_eq!(subset(&web, "web-4"), None);
}

#[test]
fn a_patch_names_the_versions_that_changed_and_no_others() {
    let mut web = spread(&[("a", json!(2)), ("b", Value::Null)]);
    create(
        &mut web,
        &NewPod {
            version: "old",
            ..named("x")
        },
        0,
    );
    let before = web.status.clone();
    assert_eq!(status_patch(&before, &before), None);
    create(&mut web, &named("web-0"), 7);
    let patch = status_patch(&before, &web.status).unwrap();
    let expected = json!({"status": {"versionedSubsetStatuses": {"versionIgnored": [
        {"name": "a", "replicas": 0, "missingReplicas": 1, "creatingPods": {"web-0": "1970-01-01T00:00:07Z"}},
        {"name": "b", "replicas": 0, "missingReplicas": -1}]}}});
    assert_eq!(patch, expected);
    let mut after = before.clone();
    after.versioned_subset_statuses.clear();
    after.observed_generation = 3;
    let patch = status_patch(&before, &after).unwrap();
    let expected = json!({"status": {"observedGeneration": 3, "versionedSubsetStatuses": {"old": null}}});
    assert_eq!(patch, expected);
}
