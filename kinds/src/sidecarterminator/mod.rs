//! SidecarTerminator: sidecars end when the main containers of their pod have ended.
//!
//! The keys are pods. A pod counts while its main containers have ended and sidecars have not.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::containerrecreaterequest::ContainerRecreateRequest;
use kruise_frame::{
    caches::{NODES, PODS},
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Memory, ResourceId, ledger};
use kruise_plan_nodes::sidecarterminator::{Snapshot, concerns, plan};
use kruise_runtime::{
    events::ObjectRef,
    worker::{Outcome, Reconciler},
};
use kruise_views::{NodeView, PodView};
use kube_cache::{Cached, Delta, Index, ObjectKey, SharedInformer};

use super::budgets::{self, CachedBudgets, PODS_BY_BUDGET};
use crate::containerrecreaterequest::cached::{CachedRequest, REQUESTS};
use crate::podunavailablebudget::cached::BUDGETS;

/// The controller.
pub static REGISTRATION: Registration =
    Registration::of::<SidecarTerminator>("sidecarterminator-controller", 3)
        .workers(
            "sidecarterminator-workers",
            "pods whose sidecars are terminated side by side",
        )
        .emits(&[kruise_plan_nodes::sidecarterminator::reasons::ALL])
        .gated(&["SidecarTerminator"])
        .watching(&[ResourceId::NODES])
        .granted(&[
            Grant::on(kruise_api::containerrecreaterequest::RESOURCE, &["create"]),
            Grant::on(kruise_api::containerrecreaterequest::RESOURCE, &["patch"]).part("status"),
            // `patch` for images on virtual nodes.
            Grant::on(ResourceId::PODS, &["patch"]),
            Grant::on(ResourceId::PODS, &["patch"]).part("status"),
            budgets::READ,
            budgets::CHARGE,
        ]);

/// Requests by the uid of the pod that controls them.
const REQUESTS_BY_OWNER: Index<CachedRequest> = Index::new("owner", |cached| {
    let owner = owner(cached).map(|(uid, _)| uid.into());
    owner.into_iter().collect()
});

/// Uid and name of the pod that controls a request.
fn owner(cached: &CachedRequest) -> Option<(&str, &str)> {
    let mut owners = cached.metadata.owner_references.iter();
    let owner = owners.find(|owner| owner.controller)?;
    (owner.kind == "Pod").then_some((&*owner.uid, &*owner.name))
}

/// Reconciles one pod from the caches.
pub struct SidecarTerminator {
    requests: SharedInformer<CachedRequest>,
    pods: SharedInformer<PodView>,
    nodes: SharedInformer<NodeView>,
    budgets: CachedBudgets,
}

impl Controls for SidecarTerminator {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            requests: setup.indexed(&REQUESTS, &[REQUESTS_BY_OWNER]),
            pods: setup.indexed(&PODS, &[PODS_BY_BUDGET]),
            nodes: setup.cache(&NODES),
            budgets: CachedBudgets::new(setup),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.maps(&PODS, |_, delta| of_pod(delta));
        wiring.maps(&REQUESTS, |_, delta| of_request(delta));
        wiring.maps(&BUDGETS, |this, delta| {
            budgets::of_pods(delta, &this.pods, |pod| {
                let key = concerns(pod).then(|| ObjectKey::of(pod));
                key.into_iter().collect()
            })
        });
    }
}

/// A pod that counts, or did: a last reconcile clears the memory of a key that does not apply any more.
fn of_pod(delta: &Delta<PodView>) -> Option<ObjectKey> {
    let mut either = delta.new.iter().chain(&delta.old);
    let concerned = either.find(|pod| concerns(pod));
    concerned.map(|pod| ObjectKey::of(&**pod))
}

/// The pod that a request is for.
fn of_request(delta: &Delta<CachedRequest>) -> Option<ObjectKey> {
    let request = delta.latest()?;
    let (_, name) = owner(request)?;
    Some(ObjectKey::new(request.namespace(), name))
}

impl Reconciler for SidecarTerminator {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let pod = self.pods.snapshot().get(key).filter(|pod| concerns(pod));
        let Some(pod) = pod else {
            // Until the pod changes there is nothing to do, and nothing to remember.
            return Outcome::Gone;
        };
        let requests: Vec<Arc<CachedRequest>> =
            self.requests.snapshot().by_index(&REQUESTS_BY_OWNER, &pod.uid);
        let readable = requests.iter().filter_map(|request| request.object.as_ref().ok());
        let readable: Vec<&ContainerRecreateRequest> = readable.collect();
        let node = pod.node.as_deref();
        let node = node.and_then(|node| self.nodes.snapshot().get(&ObjectKey::new("", node)));
        let budgets = self.budgets.read(&key.namespace);
        let snapshot = Snapshot {
            pod: &pod,
            node: node.as_deref(),
            requests: &readable,
            budgets: ledger::Budgets {
                gates: budgets.limits,
                all: &budgets,
            },
            memory,
        };
        Outcome::Plan(Box::new(plan(&snapshot, now)))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let pods = self.pods.snapshot();
        let concerned = pods.iter().filter(|pod| concerns(pod));
        concerned.map(|pod| ObjectKey::of(&**pod)).collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let pod = self.pods.snapshot().get(key)?;
        Some(ObjectRef::of(&*pod, "v1".into(), "Pod"))
    }
}
