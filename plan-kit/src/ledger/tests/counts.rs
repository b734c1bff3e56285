//! What is counted, and what becomes of entries.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_views::{PodView, Truth};
use serde_json::{Value, json};

use super::{at, budget, one, pod, pods, ready};
use crate::ledger::{
    Account, Count, Covered, Decision, Expected, Gates, Live, Operation, Refusal, count, desired_available,
    status_patch,
};

const NOW: i64 = 1000;

fn counted(budget: &PodUnavailableBudget, pods: &[Arc<PodView>], expected: Expected) -> Count {
    with_live(budget, pods, expected, &[])
}

fn with_live(
    budget: &PodUnavailableBudget,
    pods: &[Arc<PodView>],
    expected: Expected,
    live: &[(&str, Live)],
) -> Count {
    let live: BTreeMap<String, Live> = live
        .iter()
        .map(|(name, pod)| ((*name).to_owned(), pod.clone()))
        .collect();
    let covered = Covered {
        pods,
        expected,
        as_new_as_budget: true,
        live: &live,
    };
    count(budget, &covered, at(NOW)).unwrap()
}

/// Allowed, current, desired, total.
fn numbers(count: &Count) -> (i32, i32, i32, i32) {
    let status = &count.status;
    (
        status.unavailable_allowed,
        status.current_available,
        status.desired_available,
        status.total_replicas,
    )
}

#[test]
fn percentages_are_rounded_up() {
    let desired = |spec: Value, expected| desired_available(&budget(spec, 0), expected);
    for (spec, expected, wanted) in [
        (json!({"maxUnavailable": "50%"}), 5, 2),
        (json!({"maxUnavailable": "10%"}), 3, 2),
        (json!({"maxUnavailable": 0}), 1, 1),
        (json!({"maxUnavailable": 7}), 5, 0),
        (json!({"maxUnavailable": "100%"}), 5, 0),
        (json!({"maxUnavailable": 1}), -1, 0),
        (json!({"minAvailable": "40%"}), 5, 2),
        (json!({"minAvailable": "10%"}), 5, 1),
        (json!({"minAvailable": 7}), 5, 7),
        (json!({"minAvailable": "0%"}), 5, 0),
        (json!({}), 5, 0),
    ] {
        assert_eq!(
            desired(spec.clone(), expected),
            Ok(wanted),
            "{spec} of {expected}"
        );
    }
    assert!(desired(json!({"maxUnavailable": "half"}), 5).is_err());
}

#[test]
fn available_pods_above_the_desired_number_may_go() {
    let found = pods(&["a", "b", "c", "d", "e"]);
    let count = counted(&budget(one(), 0), &found, Expected::Known(5));
    assert_eq!(numbers(&count), (1, 5, 4, 5));
    assert_eq!(count.status.observed_generation, 3);
    let none = counted(&budget(one(), 0), &[], Expected::Known(0));
    assert_eq!(numbers(&none), (0, 0, 0, 0));
    let fixed = counted(&budget(json!({"minAvailable": 7}), 0), &found, Expected::Known(5));
    assert_eq!(numbers(&fixed), (0, 5, 7, 5));
}

#[test]
fn pods_beyond_the_replicas_may_go_in_addition() {
    let found = pods(&["a", "b", "c", "d", "e", "f", "g"]);
    let mut budget = budget(one(), 0);
    budget.status = counted(&budget, &found, Expected::Known(5)).status;
    assert_eq!(budget.status.unavailable_allowed, 3);
    let mut account = Account::of(&budget);
    let decisions =
        ["a", "b", "c", "d"].map(|name| account.ask(&pod(name), Operation::Delete, Gates::DEFAULT, at(NOW)));
    assert_eq!(decisions[..3], [Decision::Charged; 3]);
    assert_eq!(decisions[3], Decision::Refused(Refusal::Exhausted));
}

#[test]
fn an_unknown_scale_counts_as_the_pods_that_are_active() {
    let mut found = pods(&["a", "b", "c"]);
    found.push(Arc::new(PodView {
        deleting: true,
        ..pod("d")
    }));
    let count = counted(&budget(one(), 0), &found, Expected::Unknown);
    assert_eq!(numbers(&count), (1, 3, 2, 3));
}

#[test]
fn the_number_of_the_budget_replaces_that_of_workloads() {
    let mut spec = one();
    spec["protectTotalReplicas"] = json!(4);
    let found = pods(&["a", "b", "c", "d"]);
    for expected in [Expected::Known(0), Expected::Known(9), Expected::Unknown] {
        assert_eq!(
            numbers(&counted(&budget(spec.clone(), 0), &found, expected)),
            (1, 4, 3, 4)
        );
    }
    let mut annotated = budget(one(), 0);
    let annotations = &mut annotated.metadata.annotations;
    annotations.insert("pub.kruise.io/protect-total-replicas".into(), "4".into());
    assert_eq!(
        numbers(&counted(&annotated, &found, Expected::Known(0))),
        (1, 4, 3, 4)
    );
}

#[test]
fn pods_that_are_exempt_or_ignored_still_count() {
    let mut spec = one();
    spec["ignoredPodSelector"] = json!({"matchLabels": {"force": "true"}});
    let exempt = PodView {
        annotations: [("pub.kruise.io/no-protect", "true")].into_iter().collect(),
        labels: [("force", "true")].into_iter().collect(),
        ..pod("a")
    };
    let count = counted(&budget(spec, 0), &[Arc::new(exempt)], Expected::Known(1));
    assert_eq!(numbers(&count), (1, 1, 0, 1));
}

/// A budget with an entry of each map, so many seconds old.
fn charged(disrupted: &[(&str, i64)], updated: &[(&str, i64)]) -> PodUnavailableBudget {
    let mut budget = budget(one(), 0);
    let entry = |(name, age): &(&str, i64)| ((*name).to_owned(), at(NOW - age));
    budget.status.disrupted_pods.0 = disrupted.iter().map(entry).collect();
    budget.status.unavailable_pods.0 = updated.iter().map(entry).collect();
    budget
}

#[test]
fn pods_with_an_entry_are_not_available_and_the_next_count_is_due_when_the_first_expires() {
    let budget = charged(&[("a", 5)], &[("b", 2)]);
    let count = counted(&budget, &pods(&["a", "b", "c", "d", "e"]), Expected::Known(5));
    assert_eq!(numbers(&count), (0, 3, 4, 5));
    assert_eq!(count.status.disrupted_pods, budget.status.disrupted_pods);
    assert_eq!(count.status.unavailable_pods, budget.status.unavailable_pods);
    assert_eq!(count.again, Some(Duration::from_secs(8)));
    assert!(count.not_deleted.is_empty() && count.unproven.is_empty());
}

#[test]
fn entries_of_pods_that_are_gone_or_going_are_dropped() {
    let budget = charged(&[("gone", 1), ("going", 1)], &[("ended", 1)]);
    let mut found = pods(&["a", "b", "c"]);
    found.push(Arc::new(PodView {
        deleting: true,
        ..pod("going")
    }));
    found.push(Arc::new(PodView {
        phase: kruise_views::Phase::Succeeded,
        ..pod("ended")
    }));
    let count = counted(&budget, &found, Expected::Known(5));
    assert!(count.status.disrupted_pods.is_empty() && count.status.unavailable_pods.is_empty());
    assert_eq!(count.again, None);
    let patch = status_patch(&budget.status, &count.status).unwrap();
    assert_eq!(patch["status"].get("disruptedPods"), Some(&Value::Null));
}

#[test]
fn an_entry_of_a_pod_that_an_older_cache_lacks_stays_until_it_expires() {
    let budget = charged(&[("newer", 1)], &[]);
    let live = BTreeMap::new();
    for (as_new_as_budget, age, stays) in [(true, 1, false), (false, 1, true), (false, 20, false)] {
        let budget = PodUnavailableBudget {
            status: charged(&[("newer", age)], &[]).status,
            ..budget.clone()
        };
        let covered = Covered {
            pods: &[],
            expected: Expected::Known(5),
            as_new_as_budget,
            live: &live,
        };
        let count = count(&budget, &covered, at(NOW)).unwrap();
        assert_eq!(count.status.disrupted_pods.len(), usize::from(stays), "{age}");
    }
}

#[test]
fn an_entry_of_an_earlier_pod_of_the_name_hides_nothing() {
    let budget = charged(&[("a", 5)], &[]);
    let successor = Arc::new(PodView {
        created: Some(at(NOW - 4)),
        ..pod("a")
    });
    let count = counted(&budget, &[successor], Expected::Known(1));
    assert!(count.status.disrupted_pods.is_empty());
    assert_eq!(count.status.current_available, 1);
}

#[test]
fn a_deletion_that_did_not_happen_is_read_from_the_server_before_its_entry_is_dropped() {
    let budget = charged(&[("a", 20)], &[]);
    let found = pods(&["a", "b"]);
    let first = counted(&budget, &found, Expected::Known(2));
    assert_eq!(first.unproven, ["a"]);
    assert_eq!(numbers(&first), (0, 1, 1, 2));
    assert!(first.not_deleted.is_empty());
    let there = with_live(
        &budget,
        &found,
        Expected::Known(2),
        &[("a", Some(found[0].clone()))],
    );
    assert_eq!(numbers(&there), (1, 2, 1, 2));
    assert_eq!(there.not_deleted, [found[0].clone()]);
    let gone = with_live(&budget, &found, Expected::Known(2), &[("a", None)]);
    assert_eq!(numbers(&gone), (0, 1, 1, 2));
    assert!(gone.not_deleted.is_empty() && gone.status.disrupted_pods.is_empty());
}

#[test]
fn an_entry_that_nobody_can_prove_ends_after_twice_its_time() {
    for (age, stays) in [(39, true), (40, false)] {
        let count = counted(&charged(&[("a", age)], &[]), &pods(&["a"]), Expected::Known(1));
        assert_eq!(count.status.disrupted_pods.len(), usize::from(stays), "{age}");
        assert_eq!(count.again, stays.then_some(Duration::from_secs(1)));
    }
}

#[test]
fn an_update_that_was_seen_needs_no_read() {
    let back = |since| PodView {
        conditions: Box::new([ready(Truth::True, since)]),
        ..pod("a")
    };
    let state = |seconds: i64| {
        let text = format!(r#"{{"revision":"b","updateTimestamp":"{}"}}"#, at(seconds));
        PodView {
            annotations: [("apps.kruise.io/inplace-update-state", text.as_str())]
                .into_iter()
                .collect(),
            ..pod("a")
        }
    };
    for (pod, proven) in [
        (back(NOW - 11), false),
        (back(NOW - 10), true),
        (state(NOW - 11), false),
        (state(NOW - 10), true),
    ] {
        let count = counted(&charged(&[], &[("a", 10)]), &[Arc::new(pod)], Expected::Known(1));
        assert_eq!(count.unproven.is_empty(), proven);
        assert_eq!(count.status.unavailable_pods.is_empty(), proven);
        assert_eq!(count.status.current_available, i32::from(proven));
    }
}

#[test]
fn a_pod_that_may_not_be_ready_yet_counts_when_it_is_certain() {
    let unproven = PodView {
        trusted_at: Some(at(NOW + 3)),
        ..pod("a")
    };
    let count = counted(&budget(one(), 0), &[Arc::new(unproven)], Expected::Known(1));
    assert_eq!(
        (count.status.current_available, count.again),
        (0, Some(Duration::from_secs(3)))
    );
}

#[test]
fn a_patch_names_all_numbers_and_of_the_entries_only_those_that_differ() {
    let before = charged(&[("a", 5), ("b", 4)], &[]).status;
    assert_eq!(status_patch(&before, &before.clone()), None);
    let mut after = before.clone();
    after.disrupted_pods.0.remove("a");
    after.disrupted_pods.0.insert("c".into(), at(NOW));
    let patch = status_patch(&before, &after).unwrap();
    let expected = json!({"status": {
        "observedGeneration": 3, "unavailableAllowed": 0, "currentAvailable": 4, "desiredAvailable": 4,
        "totalReplicas": 5, "disruptedPods": {"a": null, "c": "1970-01-01T00:16:40Z"},
    }});
    assert_eq!(patch, expected);
}
