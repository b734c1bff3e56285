//! BroadcastJob: the registration of its controller, the caches that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`].

mod cached;
mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use go_compat::flags::Kind as Type;
use kruise_api::broadcastjob::{BroadcastJob, KIND};
use kruise_api::definition::Kind;
use kruise_frame::{
    caches::{NODES, PODS, owners},
    flags::flag,
    gates::Gates,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Plan, ResourceId, events};
use kruise_plan_workloads::broadcastjob::{Explain, Options};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{NodeView, PodView};
use kube_cache::SharedInformer;

use super::{
    budgets::{self, CachedBudgets, PODS_BY_BUDGET},
    fits::Fits,
    placing::Placing,
};

pub use inputs::Inputs;

use crate::podunavailablebudget::cached::BUDGETS;
use cached::{BROADCAST_JOBS, PODS_BY_NODE};
use kruise_runtime::parsed::Parsed;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<BroadcastJobs>("broadcastjob-controller", 3)
    .reconciles(
        &KIND,
        "broadcastjob-workers",
        "BroadcastJobs handled side by side",
    )
    .reviewed(&kruise_admission::kinds::broadcastjob::WEBHOOKS)
    .emits(&[
        kruise_plan_workloads::broadcastjob::reasons::ALL,
        events::OF_CHILDREN,
        &[&events::DEADLINE_EXCEEDED],
    ])
    .flagged(&[flag(
        BY_SCHEDULER,
        Type::Bool,
        "true",
        "the scheduler binds pods of BroadcastJobs to their nodes; otherwise they are created bound",
    )])
    .watching(&[ResourceId::NODES])
    .granted(&[
        super::TEMPLATES,
        Grant::on(kruise_api::broadcastjob::RESOURCE, &["delete"]),
        Grant::on(ResourceId::PODS, &["create", "delete"]),
        budgets::READ,
        budgets::CHARGE,
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

/// Flag: the scheduler binds pods.
const BY_SCHEDULER: &str = "assign-bcj-pods-by-scheduler";

const OVERDUE: Spec = Spec::overdue_writes("broadcastjob_expectation_leakage");

/// Reconciles one BroadcastJob from the caches.
pub struct BroadcastJobs {
    jobs: SharedInformer<Parsed<Placing<BroadcastJob>>>,
    nodes: SharedInformer<NodeView>,
    pods: SharedInformer<PodView>,
    budgets: CachedBudgets,
    /// Which nodes fit which jobs, found out once for each node and placement.
    fits: Fits,
    served: Arc<Served>,
    options: Options,
}

/// Options of a plan, from feature gates. How pods are bound is a flag, and no gate.
pub fn options(gates: &Gates) -> Options {
    Options {
        by_scheduler: true,
        pod_ready_gate: gates.on("PodWebhook"),
    }
}

impl Controls for BroadcastJobs {
    fn new(setup: &mut Setup<'_>) -> Self {
        let config = setup.parts.config;
        Self {
            jobs: setup.cache(&BROADCAST_JOBS),
            nodes: setup.cache(&NODES),
            pods: setup.indexed(&PODS, &[PODS_BY_NODE, PODS_BY_BUDGET]),
            budgets: CachedBudgets::new(setup),
            fits: Fits::default(),
            served: setup.parts.served.clone(),
            options: Options {
                by_scheduler: config.bool_flag(BY_SCHEDULER),
                ..options(&config.gates)
            },
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&BROADCAST_JOBS);
        wiring.maps(&PODS, |_, delta| owners(&KIND, delta));
        wiring.maps(&NODES, |this, delta| {
            let pods_on = |node: &str| this.pods.snapshot().by_index(&PODS_BY_NODE, node);
            keys::of_node(delta, &|| this.all(), &pods_on)
        });
        wiring.maps(&BUDGETS, |this, delta| budgets::owners(&KIND, delta, &this.pods));
    }
}

impl BroadcastJobs {
    fn all(&self) -> Vec<Arc<Parsed<Placing<BroadcastJob>>>> {
        self.jobs.snapshot().iter().cloned().collect()
    }
}

impl KindReconciler for BroadcastJobs {
    type Object = Placing<BroadcastJob>;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<Placing<BroadcastJob>>> {
        &self.jobs
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, placing: &Self::Object, round: Round<'_>) -> Option<Plan> {
        Some(self.read_inputs(placing).plan(
            &placing.object,
            round.api_version,
            self.options,
            round.memory,
            Explain::No,
            round.now,
        ))
    }
}
