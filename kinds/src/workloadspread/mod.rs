//! WorkloadSpread: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`]. The webhook for new pods reads the same cache, and writes the same status.

pub mod cached;
mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::FutureExt;
use jiff::Timestamp;
use kruise_api::definition::Kind;
use kruise_api::{
    names::{APPS_GROUP, workloadspread::WORKLOADS},
    workloadspread::KIND,
};
use kruise_frame::{
    caches::{NODES, PODS, PODS_BY_OWNER},
    listed::Listed,
    registration::{Controls, Grant, Registration, Setup, Wiring},
    workloads::{CachedWorkload, Workloads},
};
use kruise_plan_kit::{
    Explain, Memory, Plan, ResourceId, events,
    spread::{self, ListedKind},
    workloads::{Aspect, Known, Workload},
};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{NodeView, PodView, WorkloadView};
use kube_cache::{Delta, ObjectKey, SharedInformer};

use crate::cloneset::cached::{CLONESETS, CloneSetWorkload};
use crate::statefulset::cached::{STATEFULSETS, StatefulSetWorkload};
use crate::workloads::{APPS_STATEFULSETS, DEPLOYMENTS, REPLICA_SETS};
use crate::workloadspread::cached::SPREADS;
use cached::{CachedSpread, JOBS, REPLICA_SETS_BY_OWNER, SPREADS_BY_TARGET, target_key};
use inputs::CachedNodes;
use kruise_api::workloadspread::WorkloadSpread;
use kruise_runtime::worker::Reconciler;

pub use inputs::Inputs;
pub use inputs::before;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<WorkloadSpreads>("workloadspread-controller", 3)
    .reconciles(
        &KIND,
        "workloadspread-workers",
        "WorkloadSpreads handled side by side",
    )
    .reviewed(&kruise_admission::kinds::workloadspread::WEBHOOKS)
    .emits(&[
        kruise_plan_spread::workloadspread::reasons::ALL,
        &[&events::WORKLOAD_UNREADABLE],
    ])
    .gated(&["WorkloadSpread"])
    .finds_workloads()
    .paced(INTERVAL)
    .watching(&[ResourceId::NODES, ResourceId::JOBS])
    .granted(&[Grant::on(ResourceId::PODS, &["patch", "delete"])])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

const OVERDUE: Spec = Spec::overdue_writes("workloadspread_expectation_leakage");

/// Shortest time between two counts of one while changes keep coming.
const INTERVAL: Duration = Duration::from_millis(500);

/// Reconciles one WorkloadSpread from the caches.
pub struct WorkloadSpreads {
    all: SharedInformer<CachedSpread>,
    pods: SharedInformer<PodView>,
    nodes: SharedInformer<NodeView>,
    replica_sets: SharedInformer<WorkloadView>,
    jobs: SharedInformer<WorkloadView>,
    workloads: Workloads,
    listed: Listed<ListedKind>,
    served: Arc<Served>,
}

impl Controls for WorkloadSpreads {
    fn new(setup: &mut Setup<'_>) -> Self {
        let workloads = setup.parts.workloads.clone();
        let reading = workloads.clone();
        setup.while_leading(Box::new(move |stop| reading.clone().run(stop).boxed()));
        let listed = Listed::default();
        let (finder, followed) = (workloads.clone(), listed.clone());
        setup.while_leading(Box::new(move |stop| {
            let (finder, followed) = (finder.clone(), followed.clone());
            async move {
                let read = || finder.listed(WORKLOADS, spread::listed);
                followed.follow(read, stop).await;
            }
            .boxed()
        }));
        Self {
            all: setup.indexed(&SPREADS, &[SPREADS_BY_TARGET]),
            pods: setup.cache(&PODS),
            nodes: setup.cache(&NODES),
            replica_sets: setup.indexed(&REPLICA_SETS, &[REPLICA_SETS_BY_OWNER]),
            jobs: setup.cache(&JOBS),
            workloads,
            listed,
            served: setup.parts.served.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&SPREADS);
        wiring.maps(&PODS, |_, delta| keys::of_pod(delta));
        for (cache, kind) in [
            (&DEPLOYMENTS, ("apps", "Deployment")),
            (&REPLICA_SETS, ("apps", "ReplicaSet")),
            (&APPS_STATEFULSETS, ("apps", "StatefulSet")),
            (&JOBS, ("batch", "Job")),
        ] {
            wiring.maps(cache, move |this, delta| {
                this.of_workload(kind, delta, WorkloadView::clone)
            });
        }
        wiring.maps(&CLONESETS, |this, delta| {
            this.of_workload((APPS_GROUP, "CloneSet"), delta, CloneSetWorkload::view)
        });
        wiring.maps(&STATEFULSETS, |this, delta| {
            this.of_workload((APPS_GROUP, "StatefulSet"), delta, StatefulSetWorkload::view)
        });
        let reconciler = wiring.reconciler();
        let enqueuer = wiring.enqueuer();
        reconciler.workloads.on_change(move |namespace| {
            enqueuer.push_all(|this| {
                let all = this.all.snapshot().list(namespace).into_iter();
                all.map(|spread| ObjectKey::of(&*spread))
            });
        });
        let enqueuer = wiring.enqueuer();
        reconciler
            .listed
            .on_change(move || enqueuer.push_all(Reconciler::keys));
    }
}

impl WorkloadSpreads {
    fn of_workload<T>(
        &self,
        kind: (&str, &str),
        delta: &Delta<T>,
        view: impl Fn(&T) -> WorkloadView,
    ) -> BTreeSet<ObjectKey> {
        keys::of_workload(kind, delta, view, &|namespace, workload| {
            let key = target_key(namespace, workload);
            self.all.snapshot().by_index(&SPREADS_BY_TARGET, &key)
        })
    }

    fn plan_of(&self, spread: &Arc<WorkloadSpread>, memory: &Memory, now: Timestamp) -> Plan {
        let namespace = spread.metadata.namespace.as_str();
        let known = |workload: &Workload, aspect: Aspect| {
            if workload.group_kind() == ("batch", "Job") {
                let key = ObjectKey::new(namespace, workload.name.as_str());
                return self.jobs.snapshot().get(&key).map_or(Known::Gone, Known::Found);
            }
            self.workloads.source(namespace)(workload, aspect)
        };
        let others = self.all.snapshot().list(namespace);
        let others = others.iter().filter_map(|other| other.object.as_ref().ok());
        let before = inputs::before(spread, others.map(|other| &**other));
        let inputs = Inputs {
            spread,
            known: &known,
            stored: &|workload| self.workloads.stored(namespace, workload),
            pods_of: &|uid| self.pods.snapshot().by_index(&PODS_BY_OWNER, uid),
            all_pods: &|| self.pods.snapshot().list(namespace),
            replica_sets_of: &|uid| self.replica_sets.snapshot().by_index(&REPLICA_SETS_BY_OWNER, uid),
            nodes: &CachedNodes(&self.nodes),
            listed: &self.listed.kinds(),
            before: &before,
        };
        inputs.plan(memory, Explain::No, now)
    }
}

impl KindReconciler for WorkloadSpreads {
    type Object = Arc<WorkloadSpread>;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<CachedSpread> {
        &self.all
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, spread: &Self::Object, round: Round<'_>) -> Option<Plan> {
        Some(self.plan_of(spread, round.memory, round.now))
    }
}
