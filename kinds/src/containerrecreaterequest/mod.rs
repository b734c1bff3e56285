//! ContainerRecreateRequest: the registration of its controller, the cache that it watches, and the reconciler.
//!
//! The input of a plan is [`Inputs`].

pub mod cached;
mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::containerrecreaterequest::cached::{CachedRequest, REQUESTS};
use kruise_api::containerrecreaterequest::ContainerRecreateRequest;
use kruise_api::definition::Kind;
use kruise_api::{
    containerrecreaterequest::KIND,
    names::containerrecreaterequest::{POD_UID, UNREADY_FINALIZER},
};
use kruise_frame::{
    caches::PODS,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Plan, ResourceId};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::PodView;
use kube_cache::{Index, ObjectKey, SharedInformer};

pub use inputs::Inputs;

/// The controller.
pub static REGISTRATION: Registration =
    Registration::of::<ContainerRecreateRequests>("containerrecreaterequest-controller", 3)
        .reconciles(
            &KIND,
            "crr-workers",
            "ContainerRecreateRequests handled side by side",
        )
        .reviewed(&kruise_admission::kinds::containerrecreaterequest::WEBHOOKS)
        .gated(&["KruiseDaemon"])
        .watching(&[ResourceId::PODS])
        .granted(&[
            // `patch` for the finalizer and the label; where only `v1alpha1` is served, also for what a status has
            // no field for.
            Grant::on(
                kruise_api::containerrecreaterequest::RESOURCE,
                &["delete", "patch"],
            ),
            Grant::on(ResourceId::PODS, &["patch"]).part("status"),
        ])
        .measured(&OVERDUE, &[])
        .explained(explain::explain);

const OVERDUE: Spec = Spec::overdue_writes("containerrecreaterequest_expectation_leakage");

/// Requests that have not ended, or keep a pod out of service, by the uid of their pod.
const REQUESTS_BY_POD: Index<CachedRequest> = Index::new("pod", |cached| {
    let uid = cached.metadata.labels.get(POD_UID);
    let uid = uid.filter(|_| is_concerned(cached));
    uid.map(|uid| uid.as_str().into()).into_iter().collect()
});

fn is_concerned(cached: &CachedRequest) -> bool {
    let mut finalizers = cached.metadata.finalizers.iter();
    let is_unended = cached.object.as_ref().is_ok_and(|request| !request.has_ended());
    is_unended || finalizers.any(|one| one == UNREADY_FINALIZER)
}

/// Reconciles one ContainerRecreateRequest from the caches.
pub struct ContainerRecreateRequests {
    requests: SharedInformer<CachedRequest>,
    pods: SharedInformer<PodView>,
    served: Arc<Served>,
}

impl Controls for ContainerRecreateRequests {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            requests: setup.indexed(&REQUESTS, &[REQUESTS_BY_POD]),
            pods: setup.cache(&PODS),
            served: setup.parts.served.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&REQUESTS);
        wiring.maps(&PODS, |this, delta| {
            keys::of_pod(delta, &|uid| {
                this.requests.snapshot().by_index(&REQUESTS_BY_POD, uid)
            })
        });
    }
}

impl KindReconciler for ContainerRecreateRequests {
    type Object = ContainerRecreateRequest;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<CachedRequest> {
        &self.requests
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, request: &Self::Object, round: Round<'_>) -> Option<Plan> {
        let pod = ObjectKey::new(&*round.key.namespace, request.spec.pod_name.as_str());
        let inputs = Inputs::new(self.pods.snapshot().get(&pod), Vec::new());
        Some(inputs.plan(request, round.memory, Explain::No, round.now))
    }
}
