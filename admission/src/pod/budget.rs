//! The link from a new pod to the budget that covers it: two annotations with its name.
//!
//! All enforcement goes by this link. A pod that cannot be linked now is admitted without, and its budget's
//! controller links it later.

use std::sync::Arc;

use kruise_api::{
    definition::Kind,
    names::podunavailablebudget::{RELATED, RELATED_LEGACY},
    podunavailablebudget::PodUnavailableBudget,
};
use kruise_plan_kit::ledger::{Workload, covering};
use serde_json::Value;

use super::draft::{annotate, controller, entry, labels};
use super::step::{Context, Done, Stop};
use crate::lookup::{Lookup, Stored, readable};

impl Stored for PodUnavailableBudget {
    const KIND: &'static Kind = &kruise_api::podunavailablebudget::KIND;

    // The controller of a budget links pods that are created without their link.
    const OTHERWISE: Option<&'static str> = Some("pods are created without a link");

    type All = Vec<Arc<Self>>;

    fn read(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }

    fn collect(objects: Vec<Value>) -> Self::All {
        readable(objects)
    }
}

/// The budgets of the namespace, and the workloads that the pod belongs to if a budget depends on them.
pub(super) fn known<'a>(
    pod: &Value,
    context: &Context<'a>,
) -> Result<(&'a [Arc<PodUnavailableBudget>], &'a [Workload]), Lookup> {
    if !context.options.has_budgets() {
        return Ok((&[], &[]));
    }
    let namespace = &context.request.namespace;
    let budgets = context.lookups.list::<PodUnavailableBudget>(namespace)?;
    let has_target = budgets.iter().any(|budget| budget.spec.target_ref.is_some());
    let workloads = match controller(pod).filter(|_| has_target) {
        Some(controller) => context.lookups.workloads(Lookup::Workloads {
            namespace: namespace.clone(),
            controller,
        })?,
        None => &[],
    };
    Ok((budgets, workloads))
}

/// Names the budget on the pod. Without one, what the author wrote stays.
pub(super) fn apply(pod: &mut Value, context: &Context<'_>) -> Result<Done, Stop> {
    let (budgets, workloads) = known(pod, context)?;
    if budgets.is_empty() {
        return Ok(Done::NOTHING);
    }
    let found = covering(budgets.iter().map(|budget| &**budget), workloads, &labels(pod));
    let Some(budget) = found else {
        return Ok(Done::NOTHING);
    };
    let mut done = Done::NOTHING;
    for key in [RELATED, RELATED_LEGACY] {
        if entry(pod, "annotations", key) != Some(&*budget.metadata.name) {
            annotate(pod, key, budget.metadata.name.clone());
            done = Done::CHANGED;
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use crate::pod::sidecars::Set;
    use kruise_api::workloadspread::WorkloadSpread;
    use kruise_plan_kit::ledger::Gates;
    use serde_json::json;

    use super::*;
    use crate::lookup::{LookupResult, Lookups};
    use crate::pod::review;
    use crate::{Options, Outcome, Request};

    fn budget(name: &str, spec: &Value) -> Arc<PodUnavailableBudget> {
        let object = json!({"apiVersion": "policy.kruise.io/v1beta1",
            "metadata": {"name": name, "namespace": "shop"}, "spec": spec});
        Arc::new(PodUnavailableBudget::from_value(object).unwrap())
    }

    fn by_target() -> Value {
        json!({"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}})
    }

    fn by_labels() -> Value {
        json!({"selector": {"matchLabels": {"app": "web"}}})
    }

    fn workload(kind: &str, name: &str) -> Workload {
        Workload {
            group: "apps".into(),
            kind: kind.into(),
            name: name.into(),
        }
    }

    fn pod() -> Value {
        json!({"metadata": {"generateName": "web-", "labels": {"app": "web"}, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f", "uid": "u", "controller": true}]},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]}})
    }

    /// Reviews a pod; `workloads` answers the lookup of its workloads.
    fn reviewed(
        pod: &Value,
        options: Options,
        budgets: &[Arc<PodUnavailableBudget>],
        workloads: Option<LookupResult>,
    ) -> Value {
        let review_of = json!({"uid": "u", "operation": "CREATE", "namespace": "shop", "object": pod,
            "kind": {"group": "", "version": "v1", "kind": "Pod"}});
        let request = Request::from_review(review_of).unwrap();
        let mut lookups = Lookups::default();
        lookups.insert(Lookup::all::<Set>(""), LookupResult::all::<Set>(Arc::default()));
        lookups.insert(
            Lookup::all::<WorkloadSpread>("shop"),
            LookupResult::all::<WorkloadSpread>(Vec::new()),
        );
        lookups.insert(
            Lookup::all::<PodUnavailableBudget>("shop"),
            LookupResult::all::<PodUnavailableBudget>(budgets.to_vec()),
        );
        if let Some(workloads) = workloads {
            let lookup = Lookup::Workloads {
                namespace: "shop".into(),
                controller: workload("ReplicaSet", "web-5f"),
            };
            lookups.insert(lookup, workloads);
        }
        match review(&request, options, &lookups) {
            Outcome::Response(response) => response.applied_to(pod),
            outcome => panic!("{outcome:?}"),
        }
    }

    fn related(pod: &Value) -> [&Value; 2] {
        [RELATED, RELATED_LEGACY].map(|key| &pod["metadata"]["annotations"][key])
    }

    fn chain() -> LookupResult {
        let chain = vec![workload("ReplicaSet", "web-5f"), workload("Deployment", "web")];
        LookupResult::Workloads(chain)
    }

    #[test]
    fn a_pod_that_a_budget_covers_names_it_twice_and_one_with_a_target_comes_first() {
        let both = [budget("a", &by_labels()), budget("z", &by_target())];
        let after = reviewed(&pod(), Options::DEFAULT, &both, Some(chain()));
        assert_eq!(related(&after), ["z", "z"]);
        let one = [budget("a", &by_labels())];
        let after = reviewed(&pod(), Options::DEFAULT, &one, None);
        assert_eq!(related(&after), ["a", "a"]);
    }

    #[test]
    fn without_a_budget_that_covers_it_the_annotations_of_its_author_stay() {
        let mut named = pod();
        named["metadata"]["annotations"] = json!({RELATED: "mine"});
        let other = json!({"selector": {"matchLabels": {"app": "db"}}});
        for (budgets, workloads) in [
            (vec![], None),
            (vec![budget("a", &other)], None),
            (vec![budget("a", &by_target())], Some(LookupResult::NotFound)),
        ] {
            let after = reviewed(&named, Options::DEFAULT, &budgets, workloads);
            assert_eq!(related(&after), [&json!("mine"), &Value::Null]);
        }
        let after = reviewed(&named, Options::DEFAULT, &[budget("a", &by_labels())], None);
        assert_eq!(related(&after), ["a", "a"], "its author is overruled");
    }

    #[test]
    fn with_both_gates_off_nothing_is_looked_up() {
        let off = Options {
            budgets: Gates {
                deletions: false,
                ..Gates::DEFAULT
            },
            ..Options::DEFAULT
        };
        let after = reviewed(&pod(), off, &[budget("a", &by_labels())], None);
        assert_eq!(related(&after), [&Value::Null, &Value::Null]);
    }
}
