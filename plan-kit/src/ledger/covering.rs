//! Which budget covers a pod.

use std::cmp::Reverse;

use kruise_api::{
    names::podunavailablebudget::{RELATED, RELATED_LEGACY},
    podunavailablebudget::PodUnavailableBudget,
};
use kruise_views::{Labels, PodView};

use super::count::desired_available;
use crate::workloads::{Workload, expecting};

/// The name of the budget that protects a pod, as the pod says.
pub fn budget_of(pod: &PodView) -> Option<&str> {
    let named = |key| pod.annotations.get(key).filter(|name| !name.is_empty());
    named(RELATED).or_else(|| named(RELATED_LEGACY))
}

/// Does the budget cover a pod of these workloads, from its controller upwards, with these labels?
pub fn covers(budget: &PodUnavailableBudget, workloads: &[Workload], labels: &Labels) -> bool {
    let spec = &budget.spec;
    match (&spec.target_ref, &spec.selector) {
        (Some(target), _) => {
            let is_it = |one: &Workload| target.names(&one.group, &one.kind, &one.name);
            workloads.iter().any(is_it)
        }
        (None, Some(selector)) => !selector.is_empty() && selector.matches_by(|key| labels.get(key)),
        (None, None) => false,
    }
}

/// Is a pod of these owners, from its controller upwards with the pods that each wants, and with these labels, one
/// that the budget expects to be available? True also if an owner does not say how many pods it wants.
pub fn expects(budget: &PodUnavailableBudget, owners: &[(Workload, Option<i32>)], labels: &Labels) -> bool {
    let workloads: Vec<Workload> = owners.iter().map(|(workload, _)| workload.clone()).collect();
    if !covers(budget, &workloads, labels) {
        return false;
    }
    let wants = match &budget.spec.target_ref {
        Some(target) => owners
            .iter()
            .find(|(one, _)| target.names(&one.group, &one.kind, &one.name)),
        None => expecting(owners),
    };
    let wants = wants.map_or(0, |(_, replicas)| replicas.unwrap_or(1));
    wants > 0 && desired_available(budget, wants).is_ok_and(|desired| desired > 0)
}

/// The budget that a pod of these workloads names. If several cover it: one with a target, then the oldest, then
/// the first by name. A budget that is being deleted covers nothing.
pub fn covering<'b>(
    budgets: impl IntoIterator<Item = &'b PodUnavailableBudget>,
    workloads: &[Workload],
    labels: &Labels,
) -> Option<&'b PodUnavailableBudget> {
    let found = budgets
        .into_iter()
        .filter(|budget| budget.metadata.deletion_timestamp.is_none() && covers(budget, workloads, labels));
    found.min_by_key(|budget| {
        let metadata = &budget.metadata;
        let has_target = Reverse(budget.spec.target_ref.is_some());
        (has_target, metadata.creation_timestamp, metadata.name.as_str())
    })
}

#[cfg(test)]
mod tests {
    use kruise_views::Labels;
    use serde_json::{Value, json};

    use super::{PodUnavailableBudget, Workload, covering, expects};

    fn budget(name: &str, created: &str, spec: Value) -> PodUnavailableBudget {
        let created = format!("2026-01-02T03:04:{created}Z");
        let object = json!({
            "apiVersion": "policy.kruise.io/v1beta1",
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": spec,
        });
        PodUnavailableBudget::from_value(object).unwrap()
    }

    fn target(version: &str, kind: &str) -> Value {
        json!({"targetRef": {"apiVersion": version, "kind": kind, "name": "web"}})
    }

    fn selector(labels: Value) -> Value {
        json!({"selector": {"matchLabels": labels}})
    }

    /// The name of the budget of a pod of ReplicaSet `web-5f`, Deployment `web` and Rollout `web` with label `app=web`.
    fn found(budgets: &[PodUnavailableBudget]) -> Option<&str> {
        let workload = |group: &str, kind: &str, name: &str| Workload {
            group: group.into(),
            kind: kind.into(),
            name: name.into(),
        };
        let workloads = [
            workload("apps", "ReplicaSet", "web-5f"),
            workload("apps", "Deployment", "web"),
            workload("example.com", "Rollout", "web"),
        ];
        let labels: Labels = [("app", "web")].into_iter().collect();
        covering(budgets, &workloads, &labels).map(|budget| budget.metadata.name.as_str())
    }

    #[test]
    fn a_target_is_any_owner_of_the_pod_in_any_version() {
        for (spec, covered) in [
            (target("apps/v1", "Deployment"), true),
            (target("apps/v9", "Deployment"), true),
            (target("example.com/v1", "Rollout"), true),
            (target("apps.kruise.io/v1", "Deployment"), false),
            (target("apps/v1", "StatefulSet"), false),
            (target("apps/v1", "ReplicaSet"), false),
            (selector(json!({"app": "web"})), true),
            (selector(json!({"app": "db"})), false),
            (selector(json!({})), false),
            (json!({}), false),
        ] {
            let budgets = [budget("one", "05", spec.clone())];
            assert_eq!(found(&budgets).is_some(), covered, "{spec}");
        }
    }

    #[test]
    fn of_several_the_one_with_a_target_then_the_oldest_then_the_first_by_name_covers_the_pod() {
        let by_labels = |name: &str, created: &str| budget(name, created, selector(json!({"app": "web"})));
        let by_target = budget("z", "09", target("apps/v1", "Deployment"));
        let mut budgets = vec![
            by_labels("c", "02"),
            by_labels("b", "01"),
            by_labels("a", "01"),
            by_target,
        ];
        for expected in ["z", "a", "b", "c"] {
            assert_eq!(found(&budgets), Some(expected));
            budgets.reverse();
            assert_eq!(found(&budgets), Some(expected));
            let first = budgets.iter_mut().find(|budget| budget.metadata.name == expected);
            first.unwrap().metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH);
        }
        assert_eq!(found(&budgets), None);
    }

    #[test]
    fn a_budget_expects_pods_of_a_target_or_controller_that_wants_some() {
        let labels: Labels = [("app", "web")].into_iter().collect();
        let owners = |set: Option<i32>, deployment: Option<i32>| {
            let of = |kind, name| Workload::new("apps", kind, name);
            vec![
                (of("ReplicaSet", "web-5f"), set),
                (of("Deployment", "web"), deployment),
            ]
        };
        let with = |mut spec: Value| {
            spec["maxUnavailable"] = json!("50%");
            budget("one", "05", spec)
        };
        let by_labels = || with(selector(json!({"app": "web"})));
        let by_deployment = || with(target("apps/v1", "Deployment"));
        for (budget, owners, expected) in [
            (by_labels(), owners(Some(0), Some(3)), true),
            (by_labels(), owners(Some(3), Some(0)), false),
            (by_labels(), owners(Some(3), None), false),
            (by_labels(), owners(Some(1), Some(1)), false),
            (by_labels(), Vec::new(), false),
            (by_deployment(), owners(Some(0), Some(3)), true),
            (by_deployment(), owners(Some(3), Some(0)), false),
            (
                with(selector(json!({"app": "db"}))),
                owners(Some(3), Some(3)),
                false,
            ),
            (
                with(target("apps/v1", "StatefulSet")),
                owners(Some(3), Some(3)),
                false,
            ),
        ] {
            assert_eq!(
                expects(&budget, &owners, &labels),
                expected,
                "{:?} {owners:?}",
                budget.spec
            );
        }
        let most = budget(
            "one",
            "05",
            json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0}),
        );
        assert!(
            expects(&most, &owners(Some(3), None), &labels),
            "it may want some"
        );
    }
}
