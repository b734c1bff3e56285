//! What one pod costs.

use kruise_api::names::podunavailablebudget::{NO_PROTECT, RELATED, RELATED_LEGACY};
use kruise_api::podunavailablebudget::PodUnavailableBudgetStatus;
use kruise_views::{ContainerStatusView, ContainerView, Phase, PodView, Truth};
use serde_json::json;

use super::{ALL_GATES, OPERATIONS, at, budget, one, pod, ready};
use crate::ledger::{Account, Decision, Free, Gates, Operation, Refusal, budget_of, is_available};

const NOW: i64 = 1000;
const EXHAUSTED: Decision = Decision::Refused(Refusal::Exhausted);

fn ask(account: &mut Account<'_>, pod: &PodView, operation: Operation, seconds: i64) -> Decision {
    account.ask(pod, operation, ALL_GATES, at(seconds))
}

#[test]
fn a_delete_is_charged_a_second_one_of_the_pod_passes_and_another_pod_is_refused() {
    let budget = budget(one(), 1);
    let mut account = Account::of(&budget);
    assert_eq!(
        ask(&mut account, &pod("a"), Operation::Delete, NOW),
        Decision::Charged
    );
    assert_eq!(account.status().unavailable_allowed, 0);
    assert_eq!(account.status().disrupted_pods.get("a"), Some(at(NOW)));
    for operation in OPERATIONS.into_iter().take(3) {
        assert_eq!(
            ask(&mut account, &pod("a"), operation, NOW + 1),
            Decision::Recorded
        );
        assert_eq!(ask(&mut account, &pod("b"), operation, NOW + 1), EXHAUSTED);
    }
    let patch = json!({"status": {
        "observedGeneration": 3, "unavailableAllowed": 0, "currentAvailable": 5, "desiredAvailable": 4,
        "totalReplicas": 5, "disruptedPods": {"a": "1970-01-01T00:16:40Z"},
    }});
    assert_eq!(account.patch(), Some(patch));
}

#[test]
fn updates_and_resizes_are_recorded_apart_from_deletions_and_evictions() {
    for operation in OPERATIONS {
        let budget = budget(
            json!({"maxUnavailable": 1, "protectOperations": ["DELETE", "EVICT", "UPDATE", "RESIZE"]}),
            1,
        );
        let mut account = Account::of(&budget);
        assert_eq!(ask(&mut account, &pod("a"), operation, NOW), Decision::Charged);
        let status = account.status();
        let removes = matches!(operation, Operation::Delete | Operation::Evict);
        assert_eq!(status.disrupted_pods.get("a").is_some(), removes, "{operation:?}");
        assert_eq!(
            status.unavailable_pods.get("a").is_some(),
            !removes,
            "{operation:?}"
        );
    }
}

#[test]
fn a_refusal_has_the_words_that_clients_match_on() {
    assert_eq!(
        Refusal::Exhausted.message("web"),
        "podunavailablebudget.policy.kruise.io \"web\" is forbidden: pub unavailable allowed is negative"
    );
    assert_eq!(
        Refusal::TooManyEntries.message("web"),
        "podunavailablebudget.policy.kruise.io \"web\" is forbidden: DisruptedPods and UnavailablePods map too big - too \
         many unavailable not confirmed by PUB controller"
    );
}

#[test]
fn with_2001_entries_nothing_more_is_charged() {
    for (entries, expected) in [
        (2000, Decision::Charged),
        (2001, Decision::Refused(Refusal::TooManyEntries)),
    ] {
        let mut budget = budget(one(), 1);
        let (some, rest) = (entries / 2, entries - entries / 2);
        budget.status.disrupted_pods.0 = (0..some).map(|index| (format!("d{index}"), at(NOW))).collect();
        budget.status.unavailable_pods.0 = (0..rest).map(|index| (format!("u{index}"), at(NOW))).collect();
        let mut account = Account::of(&budget);
        assert_eq!(
            ask(&mut account, &pod("a"), Operation::Evict, NOW),
            expected,
            "{entries}"
        );
    }
}

#[test]
fn what_is_limited_follows_the_list_and_the_gate_of_resizes() {
    use Operation::{Delete, Evict, Resize, Update};
    let protected = |list: &[&str], resizes_apart| {
        let gates = Gates {
            resizes_apart,
            ..ALL_GATES
        };
        let mut spec = one();
        spec["protectOperations"] = json!(list);
        let budget = budget(spec, 1);
        let is_charged = |operation: &Operation| {
            let decision = Account::of(&budget).ask(&pod("a"), *operation, gates, at(NOW));
            assert!(matches!(
                decision,
                Decision::Charged | Decision::Free(Free::Unprotected)
            ));
            decision == Decision::Charged
        };
        OPERATIONS.into_iter().filter(is_charged).collect::<Vec<_>>()
    };
    assert_eq!(protected(&[], true), [Delete, Evict, Update]);
    assert_eq!(protected(&[], false), [Delete, Evict, Update, Resize]);
    assert_eq!(protected(&["EVICT"], false), [Evict]);
    assert_eq!(protected(&["UPDATE"], false), [Update, Resize]);
    assert_eq!(protected(&["UPDATE"], true), [Update]);
    assert_eq!(protected(&["RESIZE"], true), [Resize]);
}

#[test]
fn the_list_of_the_annotation_counts_where_the_field_has_none_and_spaces_do_not() {
    let mut budget = budget(one(), 1);
    let annotations = &mut budget.metadata.annotations;
    annotations.insert("kruise.io/pub-protect-operations".into(), "EVICT, UPDATE".into());
    for (operation, expected) in [
        (Operation::Delete, Decision::Free(Free::Unprotected)),
        (Operation::Update, Decision::Charged),
    ] {
        assert_eq!(
            ask(&mut Account::of(&budget), &pod("a"), operation, NOW),
            expected
        );
    }
}

#[test]
fn a_gate_that_is_off_limits_nothing() {
    let budget = budget(one(), 0);
    for (gates, refused) in [
        (Gates::DEFAULT, [true, true, false, false]),
        (
            Gates {
                deletions: false,
                updates: true,
                resizes_apart: false,
            },
            [false, false, true, true],
        ),
    ] {
        for (operation, refused) in OPERATIONS.into_iter().zip(refused) {
            let decision = Account::of(&budget).ask(&pod("a"), operation, gates, at(NOW));
            let expected = if refused {
                EXHAUSTED
            } else {
                Decision::Free(Free::Gate)
            };
            assert_eq!(decision, expected, "{operation:?}");
        }
    }
}

#[test]
fn pods_that_no_budget_protects_pass_without_a_charge() {
    let mut spec = one();
    spec["ignoredPodSelector"] = json!({"matchLabels": {"force": "true"}});
    let budget = budget(spec, 0);
    let free = |pod: &PodView| ask(&mut Account::of(&budget), pod, Operation::Delete, NOW);
    assert_eq!(free(&pod("a")), EXHAUSTED);
    let annotated = |value: &str| PodView {
        annotations: [(NO_PROTECT, value)].into_iter().collect(),
        ..pod("a")
    };
    for value in ["1", "t", "T", "true", "TRUE", "True"] {
        assert_eq!(free(&annotated(value)), Decision::Free(Free::Exempt), "{value}");
    }
    for value in ["", "0", "yes", "tRUE", "false"] {
        assert_eq!(free(&annotated(value)), EXHAUSTED, "{value}");
    }
    let forced = PodView {
        labels: [("force", "true")].into_iter().collect(),
        ..pod("a")
    };
    assert_eq!(free(&forced), Decision::Free(Free::Ignored));
}

#[test]
fn a_pod_that_is_unavailable_already_costs_nothing() {
    let budget = budget(one(), 0);
    let not_ready = PodView {
        conditions: Box::new([ready(Truth::False, 0)]),
        ..pod("a")
    };
    let labelled = PodView {
        labels: [("unavailable-pod.kruise.io/node", "x")].into_iter().collect(),
        ..pod("a")
    };
    let deleting = PodView {
        deleting: true,
        ..pod("a")
    };
    let ended = PodView {
        phase: Phase::Failed,
        ..pod("a")
    };
    let unproven = PodView {
        trusted_at: Some(at(NOW + 3)),
        ..pod("a")
    };
    for pod in [
        not_ready,
        labelled,
        deleting,
        ended,
        updating("id1"),
        upgrading("id1"),
        unproven,
    ] {
        for operation in OPERATIONS {
            let decision = ask(&mut Account::of(&budget), &pod, operation, NOW);
            assert_eq!(decision, Decision::Free(Free::Unavailable), "{pod:?}");
        }
    }
    for pod in [updating("id2"), upgrading("id2")] {
        assert_eq!(
            ask(&mut Account::of(&budget), &pod, Operation::Delete, NOW),
            EXHAUSTED
        );
    }
}

/// A pod whose container ran the image `id1` when its update in place began.
fn updating(image_id: &str) -> PodView {
    let state = r#"{"revision":"b","updateTimestamp":"1970-01-01T00:00:01Z","lastContainerStatuses":{"main":{"imageID":"id1"}}}"#;
    running(
        "web:2",
        image_id,
        &[("apps.kruise.io/inplace-update-state", state)],
    )
}

/// As [`updating`], but a SidecarSet changed the image.
fn upgrading(image_id: &str) -> PodView {
    let state = r#"{"logs":{"revision":"b","updateTimestamp":null,"lastContainerStatuses":{"main":{"imageID":"id1"}}}}"#;
    let annotations = [
        ("kruise.io/sidecarset-injected-list", "logs"),
        ("kruise.io/sidecarset-inplace-update-state", state),
    ];
    running("web:2", image_id, &annotations)
}

fn running(image: &str, image_id: &str, annotations: &[(&str, &str)]) -> PodView {
    PodView {
        annotations: annotations.iter().copied().collect(),
        containers: Box::new([ContainerView {
            name: "main".into(),
            image: image.into(),
            ..ContainerView::default()
        }]),
        statuses: Box::new([ContainerStatusView {
            name: "main".into(),
            image: "web:1".into(),
            image_id: image_id.into(),
            ready: true,
            ..ContainerStatusView::default()
        }]),
        ..pod("a")
    }
}

#[test]
fn a_digest_that_the_runtime_reports_otherwise_does_not_make_a_pod_unavailable() {
    for image_id in [
        "docker-pullable://mirror/web@sha256:1",
        "mirror/web@sha256:2",
        "sha256:9",
        "",
    ] {
        assert!(
            is_available(&running("web@sha256:1", image_id, &[]), at(NOW)),
            "{image_id}"
        );
    }
}

#[test]
fn an_update_to_a_digest_is_seen_by_the_image_that_ran_before() {
    let state = r#"{"revision":"b","updateTimestamp":"1970-01-01T00:00:01Z","lastContainerStatuses":{"main":{"imageID":"web@sha256:1"}}}"#;
    let annotations = [("apps.kruise.io/inplace-update-state", state)];
    for (image_id, expected) in [("web@sha256:1", false), ("mirror/web@sha256:2", true)] {
        let pod = running("web@sha256:2", image_id, &annotations);
        assert_eq!(is_available(&pod, at(NOW)), expected, "{image_id}");
    }
}

#[test]
fn a_budget_that_keeps_no_pods_is_off() {
    let mut none_desired = budget(one(), 0);
    none_desired.status.desired_available = 0;
    let mut gone = budget(json!({"minAvailable": 3}), 0);
    (gone.status.total_replicas, gone.status.current_available) = (0, 3);
    for budget in [&none_desired, &gone] {
        let decision = ask(&mut Account::of(budget), &pod("a"), Operation::Delete, NOW);
        assert_eq!(decision, Decision::Free(Free::Off));
    }
    // The number may be that of another workload.
    gone.metadata.generation += 1;
    let mut account = Account::of(&gone);
    assert!(account.is_counted());
    assert_eq!(ask(&mut account, &pod("a"), Operation::Delete, NOW), EXHAUSTED);
}

#[test]
fn an_entry_of_an_earlier_pod_of_the_name_does_not_pass_the_next_one() {
    let mut budget = budget(one(), 0);
    budget.status.disrupted_pods.0.insert("db-0".into(), at(NOW - 5));
    let created = |seconds| PodView {
        created: Some(at(seconds)),
        ..pod("db-0")
    };
    for (pod, expected) in [
        (created(NOW - 6), Decision::Recorded),
        (created(NOW - 5), Decision::Recorded),
        (created(NOW - 4), EXHAUSTED),
    ] {
        assert_eq!(
            ask(&mut Account::of(&budget), &pod, Operation::Delete, NOW),
            expected
        );
    }
}

#[test]
fn a_charge_that_is_old_is_renewed_and_one_that_has_expired_is_charged_again() {
    for (operation, age, expected) in [
        (Operation::Delete, 10, Decision::Recorded),
        (Operation::Delete, 11, Decision::Renewed),
        (Operation::Delete, 19, Decision::Renewed),
        (Operation::Delete, 20, EXHAUSTED),
        (Operation::Update, 14, Decision::Recorded),
        (Operation::Update, 19, Decision::Renewed),
    ] {
        let mut budget = budget(one(), 0);
        budget.status.disrupted_pods.0.insert("a".into(), at(NOW - age));
        let mut account = Account::of(&budget);
        assert_eq!(
            ask(&mut account, &pod("a"), operation, NOW),
            expected,
            "{operation:?} {age}"
        );
        assert_eq!(account.status().unavailable_allowed, 0);
        assert_eq!(account.patch().is_some(), expected == Decision::Renewed);
    }
}

#[test]
fn a_deletion_is_covered_longer_than_the_update_before_it() {
    let mut budget = budget(one(), 0);
    budget.status.unavailable_pods.0.insert("a".into(), at(NOW - 1));
    let mut account = Account::of(&budget);
    assert_eq!(
        ask(&mut account, &pod("a"), Operation::Update, NOW),
        Decision::Recorded
    );
    assert_eq!(
        ask(&mut account, &pod("a"), Operation::Delete, NOW),
        Decision::Renewed
    );
    assert_eq!(account.status().disrupted_pods.get("a"), Some(at(NOW)));
}

#[test]
fn a_plan_that_scales_counts_against_the_new_replicas() {
    // Of 5 pods 1 may go, and was charged.
    let stored = || {
        let mut budget = budget(one(), 0);
        budget.status.current_available = 5;
        budget
    };
    for (replicas, allowed, desired) in [(5, 0, 4), (3, 2, 2), (10, 0, 9), (0, 4, 0)] {
        let budget = stored();
        let mut account = Account::of(&budget);
        account.expect(replicas);
        let status = account.status();
        let numbers = (
            status.unavailable_allowed,
            status.desired_available,
            status.total_replicas,
        );
        assert_eq!(numbers, (allowed, desired, replicas));
    }
    let mut fixed = stored();
    fixed.spec.protect_total_replicas = Some(5);
    let mut account = Account::of(&fixed);
    account.expect(1);
    assert_eq!(account.status(), &fixed.status);
}

#[test]
fn an_edited_budget_is_judged_by_what_it_says_now() {
    // Of 5 pods 1 may go, and was charged. Then the budget is edited.
    for (spec, allowed, desired, total) in [
        (json!({"maxUnavailable": 3}), 2, 2, 5),
        (json!({"maxUnavailable": 0}), 0, 5, 5),
        (json!({"minAvailable": "100%"}), 0, 5, 5),
        (json!({"maxUnavailable": 1, "protectTotalReplicas": 3}), 2, 2, 3),
        // It cannot be read: the numbers stay.
        (json!({"maxUnavailable": "one"}), 0, 4, 5),
    ] {
        let mut budget = budget(spec.clone(), 0);
        budget.status.current_available = 5;
        budget.metadata.generation += 1;
        let account = Account::of(&budget);
        let status = account.status();
        let numbers = (
            status.unavailable_allowed,
            status.desired_available,
            status.total_replicas,
        );
        assert_eq!(numbers, (allowed, desired, total), "{spec}");
        assert_eq!(status.observed_generation, 3, "its pods are still to be counted");
    }
    let mut new = budget(one(), 0);
    new.status = PodUnavailableBudgetStatus::default();
    assert!(!Account::of(&new).is_counted());
}

#[test]
fn a_pod_names_its_budget_by_either_annotation_and_the_newer_one_wins() {
    let named = |pairs: &[(&str, &str)]| {
        let pod = PodView {
            annotations: pairs.iter().copied().collect(),
            ..PodView::default()
        };
        budget_of(&pod).map(str::to_owned)
    };
    assert_eq!(named(&[]), None);
    assert_eq!(
        named(&[(RELATED, "new"), (RELATED_LEGACY, "old")]).as_deref(),
        Some("new")
    );
    assert_eq!(
        named(&[(RELATED, ""), (RELATED_LEGACY, "old")]).as_deref(),
        Some("old")
    );
    assert_eq!(named(&[(RELATED, "")]), None);
}
