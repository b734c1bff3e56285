//! The PodUnavailableBudgets that plans charge: their cache, the input of a plan, and the workloads that a change
//! concerns.

use std::{collections::BTreeSet, sync::Arc};

use crate::podunavailablebudget::cached::BUDGETS;
use kruise_api::{
    definition::Kind,
    podunavailablebudget::{PodUnavailableBudget, PodUnavailableBudgetStatus},
};
use kruise_frame::{
    explain::workload::Cluster,
    gates::{BUDGET_DELETIONS, BUDGET_UPDATES, Gates},
    registration::{Grant, Setup},
};
use kruise_plan_kit::ledger::{self, FindBudget, Found, budget_of};
use kruise_runtime::parsed::Parsed;
use kruise_views::PodView;
use kube_cache::{Delta, Index, ObjectKey, SharedInformer};

/// Feature gates without any of which budgets limit nothing.
const GATES: &[&str] = &[BUDGET_DELETIONS, BUDGET_UPDATES];

/// The right to watch budgets.
pub const READ: Grant = Grant::on(kruise_api::podunavailablebudget::RESOURCE, &[]).with(GATES);
/// The right to charge a budget.
pub const CHARGE: Grant = Grant::on(kruise_api::podunavailablebudget::RESOURCE, &["patch"])
    .part("status")
    .with(GATES);

/// Pods by namespace and name of the budget that they name.
pub const PODS_BY_BUDGET: Index<PodView> = Index::new("podunavailablebudget", |pod| {
    let budget = budget_of(pod);
    budget
        .map(|budget| in_namespace(&pod.namespace, budget))
        .into_iter()
        .collect()
});

fn in_namespace(namespace: &str, name: &str) -> Box<str> {
    format!("{namespace}/{name}").into()
}

/// What budgets limit.
pub fn limits(gates: &Gates) -> ledger::Gates {
    ledger::Gates {
        deletions: gates.on(BUDGET_DELETIONS),
        updates: gates.on(BUDGET_UPDATES),
        resizes_apart: gates.on("InPlacePodVerticalScaling"),
    }
}

/// The cache of budgets, for a controller whose plans take pods out of service.
pub struct CachedBudgets {
    budgets: SharedInformer<Parsed<PodUnavailableBudget>>,
    limits: ledger::Gates,
}

impl Default for CachedBudgets {
    /// Without any, and nothing is limited.
    fn default() -> Self {
        Self {
            budgets: SharedInformer::new([]),
            limits: ledger::Budgets::NONE.gates,
        }
    }
}

impl CachedBudgets {
    /// The cache stays empty if budgets limit nothing, or are not served.
    pub fn new(setup: &mut Setup<'_>) -> Self {
        let gates = &setup.parts.config.gates;
        let limits = limits(gates);
        let gate = if gates.on(BUDGET_UPDATES) {
            BUDGET_UPDATES
        } else {
            BUDGET_DELETIONS
        };
        Self {
            budgets: setup.cache_with(gate, &BUDGETS),
            limits,
        }
    }

    /// Those of a namespace; of all namespaces if it is empty.
    pub fn read(&self, namespace: &str) -> Budgets {
        let snapshot = self.budgets.snapshot();
        let found = if namespace.is_empty() {
            snapshot.iter().cloned().collect()
        } else {
            snapshot.list(namespace)
        };
        Budgets::new(found, self.limits)
    }
}

/// The budgets that the pods of a plan may name.
#[derive(Clone, Debug)]
pub struct Budgets {
    found: Vec<Arc<Parsed<PodUnavailableBudget>>>,
    /// What they limit.
    pub limits: ledger::Gates,
}

impl Default for Budgets {
    fn default() -> Self {
        Self::new(Vec::new(), ledger::Budgets::NONE.gates)
    }
}

impl Budgets {
    /// Of these.
    pub fn new(found: Vec<Arc<Parsed<PodUnavailableBudget>>>, limits: ledger::Gates) -> Self {
        Self { found, limits }
    }
}

impl FindBudget for Budgets {
    fn find(&self, namespace: &str, name: &str) -> Found<'_> {
        let is_it = |budget: &&Arc<Parsed<PodUnavailableBudget>>| {
            budget.metadata.name == name && budget.metadata.namespace == namespace
        };
        let budget = self.found.iter().find(is_it)?;
        Some(budget.object.as_ref().map_err(String::as_str))
    }
}

/// The pods that name a budget which may let more of them go than before.
fn pods_of(delta: &Delta<Parsed<PodUnavailableBudget>>, pods: &SharedInformer<PodView>) -> Vec<Arc<PodView>> {
    let Some(budget) = delta.latest().filter(|_| lets_more_go(delta)) else {
        return Vec::new();
    };
    let key = in_namespace(&budget.metadata.namespace, &budget.metadata.name);
    pods.snapshot().by_index(&PODS_BY_BUDGET, &key)
}

/// Keys of the workloads of this kind whose pods may have waited for this change of a budget.
pub fn owners(
    kind: &Kind,
    delta: &Delta<Parsed<PodUnavailableBudget>>,
    pods: &SharedInformer<PodView>,
) -> BTreeSet<ObjectKey> {
    let pods = pods_of(delta, pods);
    let owners = pods.iter().filter_map(|pod| {
        let owner = pod.controller.as_deref()?;
        let is_kind = *owner.kind == *kind.kind && *owner.group == *kind.group;
        is_kind.then(|| (&*pod.namespace, &*owner.name))
    });
    // Many pods have the same owner.
    let owners: BTreeSet<(&str, &str)> = owners.collect();
    let keys = owners.into_iter();
    keys.map(|(namespace, name)| ObjectKey::new(namespace, name))
        .collect()
}

/// What `keys` says of the pods that may have waited for this change of a budget.
pub fn of_pods(
    delta: &Delta<Parsed<PodUnavailableBudget>>,
    pods: &SharedInformer<PodView>,
    keys: impl Fn(&PodView) -> Vec<ObjectKey>,
) -> BTreeSet<ObjectKey> {
    let pods = pods_of(delta, pods);
    pods.iter().flat_map(|pod| keys(pod)).collect()
}

/// Plans that a budget held ask again where it lets more pods go, or is another one. A charge lets nothing go.
fn lets_more_go(delta: &Delta<Parsed<PodUnavailableBudget>>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return true;
    };
    let (Ok(before), Ok(after)) = (&old.object, &new.object) else {
        return true;
    };
    let counted = |status: &PodUnavailableBudgetStatus| {
        let total = status.total_replicas;
        (status.observed_generation, status.desired_available, total)
    };
    before.metadata.generation != after.metadata.generation
        || before.metadata.annotations != after.metadata.annotations
        || counted(&before.status) != counted(&after.status)
        || after.status.unavailable_allowed > before.status.unavailable_allowed
}

/// The budgets in the namespace of an explained object; none unless they limit anything and are served.
pub async fn of_cluster(cluster: &Cluster<'_>) -> anyhow::Result<Budgets> {
    let limits = limits(&cluster.settings.gates);
    let is_served = cluster
        .served
        .version(kruise_api::podunavailablebudget::RESOURCE)
        .is_some();
    if !is_served || !(limits.deletions || limits.updates) {
        return Ok(Budgets::default());
    }
    let budgets = cluster.list(kruise_api::podunavailablebudget::RESOURCE).await?;
    Ok(Budgets::new(budgets, limits))
}

#[cfg(test)]
mod tests {
    use kube_cache::Delta;
    use serde_json::{Value, json};

    use super::*;

    fn budget(change: impl Fn(&mut Value)) -> Arc<Parsed<PodUnavailableBudget>> {
        let mut budget = json!({
            "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
            "status": {"observedGeneration": 1, "unavailableAllowed": 1, "currentAvailable": 5,
                       "desiredAvailable": 4, "totalReplicas": 5},
        });
        change(&mut budget);
        Arc::new(serde_json::from_value(budget).unwrap())
    }

    #[test]
    fn a_charge_wakes_nobody_and_everything_else_that_matters_does() {
        let changes: [(&str, Value, bool); 8] = [
            ("/status/unavailableAllowed", json!(0), false),
            ("/status/currentAvailable", json!(4), false),
            ("/status/unavailableAllowed", json!(2), true),
            ("/status/desiredAvailable", json!(3), true),
            ("/status/totalReplicas", json!(4), true),
            ("/status/observedGeneration", json!(2), true),
            ("/metadata/generation", json!(2), true),
            (
                "/metadata/annotations",
                json!({"kruise.io/pub-protect-operations": "EVICT"}),
                true,
            ),
        ];
        for (pointer, value, wakes) in changes {
            let (old, new) = (
                budget(|_| {}),
                budget(|budget| {
                    let (parent, key) = pointer.rsplit_once('/').unwrap();
                    budget.pointer_mut(parent).unwrap()[key] = value.clone();
                }),
            );
            let delta = Delta {
                old: Some(old),
                new: Some(new),
            };
            assert_eq!(lets_more_go(&delta), wakes, "{pointer}");
        }
        let [made, gone] = [(None, Some(budget(|_| {}))), (Some(budget(|_| {})), None)];
        for (old, new) in [made, gone] {
            assert!(lets_more_go(&Delta { old, new }));
        }
    }

    #[test]
    fn budgets_are_found_in_their_namespace_and_unreadable_ones_say_why() {
        let unreadable = budget(|budget| {
            budget["metadata"]["name"] = json!("broken");
            budget["spec"]["maxUnavailable"] = json!([]);
        });
        let limits = ledger::Gates::DEFAULT;
        let budgets = Budgets::new(vec![budget(|_| {}), unreadable], limits);
        assert!(budgets.find("shop", "web").unwrap().is_ok());
        assert!(budgets.find("shop", "broken").unwrap().is_err());
        assert!(budgets.find("other", "web").is_none() && budgets.find("shop", "other").is_none());
    }
}
