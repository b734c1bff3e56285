//! PodUnavailableBudget: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`]. A budget is counted again when one of its pods changes, when one of its
//! workloads is scaled, when a charge expires, and when it or a budget beside it is edited; at most twice a second.

pub mod cached;
mod explain;
mod inputs;
mod keys;
mod reads;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use jiff::Timestamp;
use kruise_api::definition::Kind;
use kruise_api::{
    names::APPS_GROUP,
    podunavailablebudget::{KIND, PodUnavailableBudget},
};
use kruise_frame::{
    caches::PODS,
    registration::{Controls, Grant, Registration, Setup, Wiring},
    workloads::{CachedWorkload, Workloads},
};
use kruise_plan_kit::{
    Explain, Memory, Need, Plan, ResourceId, Why,
    workloads::{Aspect, Workload},
};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{PodView, WorkloadView};
use kube_cache::{Delta, ObjectKey, SharedInformer, Version};

use crate::cloneset::cached::{CLONESETS, CloneSetWorkload};
use crate::podunavailablebudget::cached::BUDGETS;
use crate::statefulset::cached::{STATEFULSETS, StatefulSetWorkload};
use crate::workloads::{APPS_STATEFULSETS, DEPLOYMENTS, REPLICA_SETS};
pub use inputs::Inputs;
use kruise_runtime::parsed::Parsed;
use reads::Reads;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<Budgets>("podunavailablebudget-controller", 3)
    .reconciles(
        &KIND,
        "podunavailablebudget-workers",
        "PodUnavailableBudgets handled side by side",
    )
    .reviewed(&kruise_admission::kinds::podunavailablebudget::WEBHOOKS)
    .emits(&[kruise_plan_workloads::podunavailablebudget::reasons::ALL])
    .gated(&["PodUnavailableBudgetDeleteGate", "PodUnavailableBudgetUpdateGate"])
    .finds_workloads()
    .paced(INTERVAL)
    .granted(&[Grant::on(ResourceId::PODS, &["patch"])])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

/// Shortest time between two counts of a budget while changes keep coming.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time until a budget is counted again whose workloads have yet to be read. The read that ends sooner enqueues it.
const AGAIN: Duration = Duration::from_secs(5);

const OVERDUE: Spec = Spec::overdue_writes("podunavailablebudget_expectation_leakage");

/// Reconciles one budget from the caches.
pub struct Budgets {
    cache: SharedInformer<Parsed<PodUnavailableBudget>>,
    pods: SharedInformer<PodView>,
    workloads: Workloads,
    served: Arc<Served>,
}

impl Controls for Budgets {
    fn new(setup: &mut Setup<'_>) -> Self {
        let workloads = setup.parts.workloads.clone();
        let reading = workloads.clone();
        setup.while_leading(Box::new(move |stop| reading.clone().run(stop).boxed()));
        Self {
            cache: setup.cache(&BUDGETS),
            pods: setup.cache(&PODS),
            workloads,
            served: setup.parts.served.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.maps(&BUDGETS, |this, delta| keys::of_budget(delta, &this.cache));
        wiring.maps(&PODS, Self::of_pod);
        wiring.maps(&DEPLOYMENTS, |this, delta| {
            this.of_workload(("apps", "Deployment"), delta, WorkloadView::clone)
        });
        wiring.maps(&REPLICA_SETS, |this, delta| {
            this.of_workload(("apps", "ReplicaSet"), delta, WorkloadView::clone)
        });
        wiring.maps(&APPS_STATEFULSETS, |this, delta| {
            this.of_workload(("apps", "StatefulSet"), delta, WorkloadView::clone)
        });
        wiring.maps(&CLONESETS, |this, delta| {
            this.of_workload((APPS_GROUP, "CloneSet"), delta, CloneSetWorkload::view)
        });
        wiring.maps(&STATEFULSETS, |this, delta| {
            this.of_workload((APPS_GROUP, "StatefulSet"), delta, StatefulSetWorkload::view)
        });
        let enqueuer = wiring.enqueuer();
        wiring.reconciler().workloads.on_change(move |namespace| {
            enqueuer.push_all(|this| {
                let budgets = this.of_namespace(namespace).into_iter();
                budgets.map(|budget| ObjectKey::of(&*budget))
            });
        });
    }
}

impl Budgets {
    fn of_namespace(&self, namespace: &str) -> Vec<Arc<Parsed<PodUnavailableBudget>>> {
        self.cache.snapshot().list(namespace)
    }

    fn of_pod(&self, delta: &Delta<PodView>) -> Vec<ObjectKey> {
        let Some(namespace) = delta.latest().map(|pod| pod.namespace.clone()) else {
            return Vec::new();
        };
        let known = self.workloads.source(&namespace);
        keys::of_pod(delta, &self.of_namespace(&namespace), &known)
    }

    fn of_workload<T>(
        &self,
        kind: (&str, &str),
        delta: &Delta<T>,
        view: impl Fn(&T) -> WorkloadView,
    ) -> Vec<ObjectKey> {
        let Some((namespace, workload)) = keys::changed(kind, delta, view) else {
            return Vec::new();
        };
        let budgets = self.of_namespace(&namespace);
        if budgets.is_empty() {
            return Vec::new();
        }
        let pods = self.pods.snapshot().list(&namespace);
        keys::of_workload(&workload, &budgets, &pods, &self.workloads.source(&namespace))
    }
}

impl KindReconciler for Budgets {
    type Object = PodUnavailableBudget;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<PodUnavailableBudget>> {
        &self.cache
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, budget: &Self::Object, round: Round<'_>) -> Option<Plan> {
        Some(self.plan_of(budget, round.memory, round.now))
    }
}

impl Budgets {
    fn plan_of(&self, budget: &PodUnavailableBudget, memory: &Memory, now: Timestamp) -> Plan {
        let namespace = &budget.metadata.namespace;
        let (pods, observed) = {
            let snapshot = self.pods.snapshot();
            (snapshot.list(namespace), snapshot.observed())
        };
        let budgets = self.of_namespace(namespace);
        let (cached, reads) = (self.workloads.source(namespace), Reads::of(memory));
        let known = |workload: &Workload, aspect: Aspect| {
            let read = reads.known(workload);
            read.unwrap_or_else(|| cached(workload, aspect))
        };
        let inputs = Inputs::new(budget, &pods, &budgets, &known);
        let needs = inputs
            .doubted()
            .filter_map(|one| self.workloads.need(namespace, one));
        let needs: Vec<Need> = needs.collect();
        if !needs.is_empty() {
            return Plan {
                needs,
                requeue: Some(AGAIN),
                ..Plan::default()
            };
        }
        if let Some(missing) = inputs.missing() {
            return Plan {
                why: vec![Why::of_set(format!(
                    "{} {} has yet to be read",
                    missing.kind, missing.name
                ))],
                requeue: Some(AGAIN),
                ..Plan::default()
            };
        }
        // Versions are those of one store, and a pod that is not in a newer cache is gone.
        let counted = budget.metadata.resource_version.parse::<Version>().ok();
        let is_new = observed
            .zip(counted)
            .is_some_and(|(observed, counted)| observed >= counted);
        let mut plan = inputs
            .with_reads(memory)
            .as_new_as_budget(is_new)
            .plan(Explain::No, now);
        if reads.have_failed() {
            plan.requeue = plan.requeue.into_iter().chain([AGAIN]).min();
        }
        plan
    }
}
