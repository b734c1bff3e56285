//! UnitedDeployment: the registration of its controller, and the reconciler.
//!
//! The input of a plan is [`Inputs`]. Pods lead to their UnitedDeployment through their workload, those of a
//! Deployment through their ReplicaSet, too.

mod cached;
mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_api::{
    names::APPS_GROUP,
    uniteddeployment::{Child, KIND, UnitedDeployment},
};
use kruise_frame::{
    caches::{PODS, PODS_BY_OWNER, REVISIONS, owners},
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Plan, ResourceId};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{MetadataView, OwnerView, PodView, RevisionView, SubsetView};
use kube_cache::{ObjectKey, SharedInformer};

use cached::{REPLICA_SETS, REPLICA_SETS_BY_OWNER, UNITED_DEPLOYMENTS, cache};
use kruise_runtime::parsed::Parsed;

pub use inputs::{Inputs, Pods};

/// The controller.
pub static REGISTRATION: Registration =
    Registration::of::<UnitedDeployments>("uniteddeployment-controller", 3)
        .reconciles(
            &KIND,
            "uniteddeployment-workers",
            "UnitedDeployments handled side by side",
        )
        .reviewed(&kruise_admission::kinds::uniteddeployment::WEBHOOKS)
        .emits(&[kruise_plan_united::reasons::ALL])
        .granted(&[
            super::TEMPLATES,
            Grant::on(ResourceId::APPS_STATEFULSETS, WRITES),
            Grant::on(kruise_api::statefulset::RESOURCE, WRITES),
            Grant::on(kruise_api::cloneset::RESOURCE, WRITES),
            Grant::on(ResourceId::DEPLOYMENTS, WRITES),
            Grant::on(ResourceId::REVISIONS, WRITES),
            Grant::on(ResourceId::PODS, &["patch", "delete"]),
        ])
        .measured(&OVERDUE, &[])
        .explained(explain::explain);

const WRITES: &[&str] = &["create", "patch", "delete"];

const OVERDUE: Spec = Spec::overdue_writes("uniteddeployment_expectation_leakage");

/// Reconciles one UnitedDeployment from the caches.
pub struct UnitedDeployments {
    all: SharedInformer<Parsed<UnitedDeployment>>,
    /// By kind, in the order of [`Child::ALL`].
    workloads: [SharedInformer<SubsetView>; 4],
    replica_sets: SharedInformer<MetadataView>,
    pods: SharedInformer<PodView>,
    revisions: SharedInformer<RevisionView>,
    served: Arc<Served>,
}

impl Controls for UnitedDeployments {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            all: setup.cache(&UNITED_DEPLOYMENTS),
            workloads: Child::ALL.map(|child| setup.cache(cache(child))),
            replica_sets: setup.cache(&REPLICA_SETS),
            pods: setup.cache(&PODS),
            revisions: setup.cache(&REVISIONS),
            served: setup.parts.served.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&UNITED_DEPLOYMENTS);
        for child in Child::ALL {
            wiring.maps(cache(child), |this, delta| {
                keys::of_workload(delta, |namespace| this.all.snapshot().list(namespace))
            });
        }
        wiring.maps(&REPLICA_SETS, |this, delta| {
            let set = delta.latest()?;
            this.of_owner(&set.namespace, set.controller.as_deref()?)
        });
        wiring.maps(&PODS, |this, delta| {
            keys::of_pod(delta, |namespace, owner| this.of_owner(namespace, owner))
        });
        wiring.maps(&REVISIONS, |_, delta| owners(&KIND, delta));
    }
}

impl UnitedDeployments {
    /// The UnitedDeployment above a workload or a ReplicaSet that controls something.
    fn of_owner(&self, namespace: &str, owner: &OwnerView) -> Option<ObjectKey> {
        let key = ObjectKey::new(namespace, owner.name.clone());
        let child = match (&*owner.group, &*owner.kind) {
            ("apps", "ReplicaSet") => {
                let set = self.replica_sets.snapshot().get(&key)?;
                return self.of_owner(
                    namespace,
                    set.controller
                        .as_deref()
                        .filter(|owner| *owner.kind != *"ReplicaSet")?,
                );
            }
            ("apps", "StatefulSet") => Child::StatefulSet,
            ("apps", "Deployment") => Child::Deployment,
            (APPS_GROUP, "StatefulSet") => Child::AdvancedStatefulSet,
            (APPS_GROUP, "CloneSet") => Child::CloneSet,
            _ => return None,
        };
        let informers = Child::ALL.iter().zip(&self.workloads);
        let mut informers = informers.filter(|(of, _)| **of == child);
        let workload = informers.next()?.1.snapshot().get(&key)?;
        let united = workload.controller.as_ref()?;
        let is_ours = *united.kind == *KIND.kind && *united.group == *KIND.group;
        is_ours.then(|| ObjectKey::new(namespace, united.name.clone()))
    }

    /// Reads the caches: one snapshot of each.
    fn read_inputs(&self, united: &UnitedDeployment) -> Inputs {
        let namespace = &*united.metadata.namespace;
        let by_kind = Child::ALL.into_iter().zip(&self.workloads);
        let all = by_kind.flat_map(|(child, informer)| {
            let listed = informer.snapshot().list(namespace);
            listed.into_iter().map(move |view| (child, view))
        });
        let all = all.collect();
        let replica_sets = self.replica_sets.snapshot();
        let pods = self.pods.snapshot();
        let pods = Pods {
            of: &|uid| pods.by_index(&PODS_BY_OWNER, uid),
            replica_sets: &|uid| replica_sets.by_index(&REPLICA_SETS_BY_OWNER, uid),
        };
        let revisions = self.revisions.snapshot().list(namespace);
        Inputs::new(united, &self.served, all, &pods, revisions)
    }
}

impl KindReconciler for UnitedDeployments {
    type Object = UnitedDeployment;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<UnitedDeployment>> {
        &self.all
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, united: &Self::Object, round: Round<'_>) -> Option<Plan> {
        Some(
            self.read_inputs(united)
                .plan(united, round.api_version, round.memory, Explain::No, round.now),
        )
    }
}
