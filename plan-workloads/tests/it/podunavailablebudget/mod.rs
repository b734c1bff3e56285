//! What is planned for a budget and the pods that it covers.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::{
    Explain, Plan, ResourceId,
    ledger::{Expected, Live},
    revision,
};
use kruise_plan_test_kit::{Labelled, pod, spoken, text};
use kruise_plan_workloads::podunavailablebudget::{Snapshot, plan};
use kruise_views::PodView;
use serde_json::{Value, json};

/// The instant of all plans.
fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn ago(seconds: i64) -> String {
    text(now() - SignedDuration::from_secs(seconds))
}

/// A budget `shop/web`, never counted.
fn budget(spec: Value) -> Value {
    json!({
        "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 2},
        "spec": spec,
    })
}

/// A budget that lets one of its five pods go, and was counted so.
fn counted() -> Value {
    let mut budget = budget(json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}));
    budget["status"] = json!({"observedGeneration": 2, "unavailableAllowed": 1, "currentAvailable": 5,
                              "desiredAvailable": 4, "totalReplicas": 5});
    budget
}

/// Pods by their lines; each names the budget `web` unless its line ends in `->NAME` or `->`.
fn pods(lines: &[&str]) -> Vec<Arc<PodView>> {
    let labelled = |_: &str| Labelled {
        template: json!({"metadata": {"labels": {"app": "web"}, "annotations": {}},
                         "spec": {"containers": [{"name": "main", "image": "web:1"}]}}),
        revision: format!("web-{}", revision::short_hash("web-a")),
    };
    let read = |line: &&str| {
        let (line, named) = line.split_once("->").unwrap_or((line, "web"));
        let mut pod = pod(
            line,
            labelled,
            &json!({"kind": "CloneSet", "controller": true}),
            now(),
        );
        if !named.is_empty() {
            pod["metadata"]["annotations"]["pub.kruise.io/related-pub"] = json!(named);
        }
        Arc::new(serde_json::from_str(&pod.to_string()).unwrap())
    };
    lines.iter().map(read).collect()
}

struct Case<'a> {
    budget: Value,
    pods: &'a [&'a str],
    uncovered: &'a [&'a str],
    expected: Expected,
    live: BTreeMap<String, Live>,
    may_read: bool,
}

impl Case<'_> {
    fn plan(&self) -> Plan {
        let budget = PodUnavailableBudget::from_value(self.budget.clone()).unwrap();
        let snapshot = Snapshot {
            budget: &budget,
            pods: &pods(self.pods),
            uncovered: &pods(self.uncovered),
            expected: self.expected,
            unwanted: 0,
            as_new_as_budget: true,
            live: &self.live,
            may_read: self.may_read,
            covers: &|name, _| name == "other",
            is_first: &|pod| *pod.name != *"g",
            explain: Explain::No,
        };
        plan(&snapshot, now())
    }

    fn spoken(&self) -> String {
        spoken(&self.plan())
    }
}

fn case<'a>(budget: Value, pods: &'a [&'a str], expected: i32) -> Case<'a> {
    Case {
        budget,
        pods,
        uncovered: &[],
        expected: Expected::Known(expected),
        live: BTreeMap::new(),
        may_read: true,
    }
}

const FIVE: [&str; 5] = ["a a", "b a", "c a", "d a", "e a"];

#[test]
fn a_new_budget_is_counted_at_once() {
    let spec = json!({"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxUnavailable": "50%"});
    assert_eq!(
        case(budget(spec), &FIVE, 5).spoken(),
        "status now {\"currentAvailable\":5,\"desiredAvailable\":2,\"observedGeneration\":2,\"totalReplicas\":5,\
         \"unavailableAllowed\":3}\n"
    );
}

#[test]
fn a_pod_that_no_budget_covers_any_more_loses_its_name_as_it_is_now() {
    let case = Case {
        uncovered: &["z a"],
        ..case(counted(), &FIVE, 5)
    };
    let expected = "unlink-budget pods/z: no budget covers it\n    main {\"metadata\":{\"annotations\":{\"kruise.io/related-pub\":\
                    null,\"pub.kruise.io/related-pub\":null}}} if UidAndVersion(\"uid-z\", \"9\")\n";
    assert_eq!(case.spoken(), expected);
}

#[test]
fn a_budget_that_is_right_is_left_alone() {
    assert_eq!(case(counted(), &FIVE, 5).spoken(), "");
}

#[test]
fn a_budget_without_pods_says_so() {
    assert_eq!(
        case(counted(), &[], 0).spoken(),
        "event Normal NoPods: No matching pods found\n\
         status soon {\"currentAvailable\":0,\"desiredAvailable\":0,\"observedGeneration\":2,\"totalReplicas\":0,\
         \"unavailableAllowed\":0}\n"
    );
}

#[test]
fn a_pod_that_fails_makes_the_budget_smaller_and_a_scale_in_larger() {
    let unready = ["a a unready", "b a", "c a", "d a", "e a"];
    let status = |pods: &[&str], replicas| {
        let plan = case(counted(), pods, replicas).plan();
        plan.status.unwrap().patch["status"]["unavailableAllowed"].clone()
    };
    assert_eq!(status(&unready, 5), 0);
    assert_eq!(status(&FIVE, 3), 3);
}

#[test]
fn a_number_that_cannot_be_read_is_reported_and_nothing_is_counted() {
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": "half"});
    let text = case(budget(spec), &FIVE, 5).spoken();
    let event =
        "event Warning CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: ";
    assert!(text.starts_with(event) && !text.contains("status"), "{text}");
}

#[test]
fn pods_that_name_no_budget_or_one_that_does_not_cover_them_are_given_theirs() {
    let lines = [
        "a a->",
        "b a->gone",
        "c a->other",
        "d a",
        "e a terminating->",
        "f a failed->",
        // Another budget is to cover it.
        "g a->",
    ];
    let text = case(counted(), &lines, 5).spoken();
    let links: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("link-budget"))
        .collect();
    assert_eq!(
        links,
        [
            "link-budget pods/a: it names no budget",
            "link-budget pods/b: the budget gone that it names does not cover it",
        ]
    );
    assert!(text.contains(
        "main {\"metadata\":{\"annotations\":{\"kruise.io/related-pub\":\"web\",\"pub.kruise.io/related-pub\":\"web\"}}}"
    ));
}

#[test]
fn a_charge_lasts_until_its_pod_is_seen_to_go() {
    let mut budget = counted();
    budget["status"]["disruptedPods"] = json!({"a": ago(5)});
    budget["status"]["unavailableAllowed"] = json!(0);
    budget["status"]["currentAvailable"] = json!(4);
    assert_eq!(case(budget.clone(), &FIVE, 5).spoken(), "again in 15s\n");
    let going = ["a a terminating", "b a", "c a", "d a", "e a"];
    assert_eq!(
        case(budget, &going, 5).spoken(),
        "status soon {\"currentAvailable\":4,\"desiredAvailable\":4,\"disruptedPods\":null,\"observedGeneration\":2,\
         \"totalReplicas\":5,\"unavailableAllowed\":0}\n"
    );
}

#[test]
fn a_deletion_that_did_not_happen_is_read_again_reported_and_given_back() {
    let mut budget = counted();
    budget["status"]["disruptedPods"] = json!({"a": ago(20)});
    budget["status"]["unavailableAllowed"] = json!(0);
    budget["status"]["currentAvailable"] = json!(4);
    let mut case = case(budget, &FIVE, 5);
    let plan = case.plan();
    let needs: Vec<_> = plan.needs.iter().collect();
    let kruise_plan_kit::Need::Live(resource, namespace, name) = needs[0] else {
        panic!("{needs:?}");
    };
    assert_eq!(
        (*resource, namespace.as_str(), name.as_str()),
        (ResourceId::PODS, "shop", "a")
    );
    assert!(plan.status.is_none() && plan.writes.is_empty());

    case.live.insert("a".into(), Some(pods(&["a a"])[0].clone()));
    assert_eq!(
        case.spoken(),
        "event Warning NotDeleted: Pod was expected by PUB shop/web to be deleted but it wasn't\n\
         status soon {\"currentAvailable\":5,\"desiredAvailable\":4,\"disruptedPods\":null,\"observedGeneration\":2,\
         \"totalReplicas\":5,\"unavailableAllowed\":1}\n"
    );
    assert_eq!(&*case.plan().events[0].about.as_ref().unwrap().name, "a");

    case.live.insert("a".into(), None);
    assert_eq!(
        case.spoken(),
        "status soon {\"currentAvailable\":4,\"desiredAvailable\":4,\"disruptedPods\":null,\"observedGeneration\":2,\
         \"totalReplicas\":5,\"unavailableAllowed\":0}\n"
    );

    // A server that does not answer leaves the charge where it is.
    (case.live, case.may_read) = (BTreeMap::new(), false);
    assert_eq!(case.spoken(), "again in 20s\n");
}

#[test]
fn a_budget_that_is_being_deleted_is_left_alone() {
    let mut budget = counted();
    budget["metadata"]["deletionTimestamp"] = json!(ago(1));
    let plan = case(budget, &["a a->"], 9).plan();
    assert!(plan.writes.is_empty() && plan.status.is_none() && plan.events.is_empty());
}

#[test]
fn charges_that_openkruise_recorded_are_taken_over() {
    // Written by hand from the specification: OpenKruise records a resize with the deletions.
    let mut budget = counted();
    budget["status"]["disruptedPods"] = json!({"a": ago(3), "b": ago(25)});
    budget["status"]["unavailablePods"] = json!({"c": ago(4), "gone": ago(1)});
    budget["status"]["unavailableAllowed"] = json!(0);
    budget["status"]["currentAvailable"] = json!(2);
    let pods = ["a a", "b a terminating", "c a", "d a", "e a"];
    assert_eq!(
        case(budget, &pods, 5).spoken(),
        "status soon {\"currentAvailable\":2,\"desiredAvailable\":4,\"disruptedPods\":{\"b\":null},\"observedGeneration\":2,\
         \"totalReplicas\":5,\"unavailableAllowed\":0,\"unavailablePods\":{\"gone\":null}}\nagain in 6s\n"
    );
}
