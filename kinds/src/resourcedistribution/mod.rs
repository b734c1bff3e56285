//! ResourceDistribution: the registration of its controller, and the reconciler.
//!
//! The input of a plan is [`Inputs`]. A manager that is limited to a namespace leaves ResourceDistributions alone:
//! it sees no copies in other namespaces.

mod cached;
mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_api::resourcedistribution::KIND;
use kruise_frame::{
    caches::NAMESPACES,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Plan, ResourceId};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{MetadataView, NamespaceView};
use kube_cache::{Delta, ObjectKey, SharedInformer};

use cached::{
    CONFIG_MAPS, CachedDistribution, DISTRIBUTIONS_BY_COPY, RESOURCE_DISTRIBUTIONS, SECRETS, copy_key,
};
use inputs::CachedCopies;
use kruise_api::resourcedistribution::ResourceDistribution;

pub use inputs::Inputs;

/// The controller.
pub static REGISTRATION: Registration =
    Registration::of::<ResourceDistributions>("resourcedistribution-controller", 3)
        .reconciles(
            &KIND,
            "resourcedistribution-workers",
            "ResourceDistributions handled side by side",
        )
        .reviewed(&kruise_admission::kinds::resourcedistribution::WEBHOOKS)
        .emits(&[kruise_plan_distribution::resourcedistribution::reasons::ALL])
        .gated(&["ResourceDistributionGate"])
        .watching(&[ResourceId::NAMESPACES])
        .granted(&[
            Grant::on(ResourceId::SECRETS, WRITES),
            Grant::on(ResourceId::CONFIG_MAPS, WRITES),
        ])
        .measured(&OVERDUE, &[])
        .explained(explain::explain);

const WRITES: &[&str] = &["create", "delete", "patch"];

const OVERDUE: Spec = Spec::overdue_writes("resourcedistribution_expectation_leakage");

/// Reconciles one ResourceDistribution from the caches.
pub struct ResourceDistributions {
    distributions: SharedInformer<CachedDistribution>,
    namespaces: SharedInformer<NamespaceView>,
    copies: CachedCopies,
    served: Arc<Served>,
    /// Whether the manager watches all namespaces.
    sees_all: bool,
}

impl Controls for ResourceDistributions {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            distributions: setup.cache(&RESOURCE_DISTRIBUTIONS),
            namespaces: setup.cache(&NAMESPACES),
            copies: CachedCopies {
                secrets: setup.cache(&SECRETS),
                config_maps: setup.cache(&CONFIG_MAPS),
            },
            served: setup.parts.served.clone(),
            sees_all: setup.parts.config.namespace.is_none(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&RESOURCE_DISTRIBUTIONS);
        wiring.maps(&NAMESPACES, |this, delta| {
            keys::of_namespace(delta, &this.distributions.snapshot().list(""))
        });
        wiring.maps(&SECRETS, |this, delta| this.of_copy(ResourceId::SECRETS, delta));
        wiring.maps(&CONFIG_MAPS, |this, delta| {
            this.of_copy(ResourceId::CONFIG_MAPS, delta)
        });
    }
}

impl ResourceDistributions {
    fn of_copy(&self, resource: ResourceId, delta: &Delta<MetadataView>) -> Vec<ObjectKey> {
        let Some(copy) = delta.latest() else {
            return Vec::new();
        };
        let key = copy_key(resource, &copy.name);
        let copying = self
            .distributions
            .snapshot()
            .by_index(&DISTRIBUTIONS_BY_COPY, &key);
        keys::of_copy(delta, &copying)
    }
}

impl KindReconciler for ResourceDistributions {
    type Object = Arc<ResourceDistribution>;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<CachedDistribution> {
        &self.distributions
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, distribution: &Self::Object, round: Round<'_>) -> Option<Plan> {
        let inputs = Inputs {
            namespaces: self.namespaces.snapshot().list(""),
            copies: &self.copies,
        };
        let plan = || {
            inputs.plan(
                distribution,
                round.api_version,
                round.memory,
                Explain::No,
                round.now,
            )
        };
        self.sees_all.then(plan)
    }
}
