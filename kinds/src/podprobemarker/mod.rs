//! PodProbeMarker: the registration of its controller, and the reconciler.

mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::podprobemarker::KIND;
use kruise_frame::{
    caches::{NODES, PODS},
    invalid_spec,
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Memory, ResourceId};
use kruise_plan_nodes::podprobemarker::Options;
use kruise_runtime::{
    Served,
    events::ObjectRef,
    metrics::objects::Spec,
    worker::{Outcome, Reconciler},
};
use kruise_views::{NodeView, PodView};
use kube_cache::{ObjectKey, SharedInformer};

use super::probes::{CachedMarker, CachedProbes, NODE_POD_PROBES, POD_PROBE_MARKERS};

pub use inputs::{Inputs, ListedNodes};

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<PodProbeMarkers>("PodProbeMarker-controller", 3)
    .reconciles(
        &KIND,
        "podprobemarker-workers",
        "PodProbeMarkers handled side by side",
    )
    .reviewed(&kruise_admission::kinds::podprobemarker::WEBHOOKS)
    .emits(&[kruise_plan_nodes::podprobemarker::reasons::ALL])
    .gated(&["PodProbeMarkerGate"])
    .paced(INTERVAL)
    .watching(&[ResourceId::PODS, ResourceId::NODES])
    .granted(&[
        // `patch` for the finalizer.
        Grant::on(kruise_api::podprobemarker::RESOURCE, &["patch"]),
        Grant::on(kruise_api::nodepodprobe::RESOURCE, &["patch"]),
        Grant::on(ResourceId::PODS, &["patch"]).with(&[SERVERLESS]),
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

/// The feature gate that marks pods of virtual nodes.
pub const SERVERLESS: &str = "EnablePodProbeMarkerOnServerless";

/// Many pods of a rollout become ready for probes within this time, and are added in one write for each node.
const INTERVAL: Duration = Duration::from_millis(500);

const OVERDUE: Spec = Spec::overdue_writes("podprobemarker_expectation_leakage");

/// Reconciles one PodProbeMarker from the caches.
pub struct PodProbeMarkers {
    markers: SharedInformer<CachedMarker>,
    probes: SharedInformer<CachedProbes>,
    pods: SharedInformer<PodView>,
    nodes: SharedInformer<NodeView>,
    served: Arc<Served>,
    options: Options,
}

impl Controls for PodProbeMarkers {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            markers: setup.cache(&POD_PROBE_MARKERS),
            probes: setup.cache(&NODE_POD_PROBES),
            pods: setup.cache(&PODS),
            nodes: setup.cache(&NODES),
            served: setup.parts.served.clone(),
            options: Options {
                marks_serverless: setup.parts.config.gates.on(SERVERLESS),
            },
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&POD_PROBE_MARKERS);
        wiring.maps(&PODS, |this, delta| {
            keys::of_pod(delta, this.options.marks_serverless, &|namespace| {
                this.markers.snapshot().list(namespace)
            })
        });
        wiring.maps(&NODE_POD_PROBES, |this, delta| {
            keys::of_probes(delta, &|| this.keys())
        });
        wiring.maps(&NODES, |this, delta| keys::of_node(delta, &|| this.keys()));
    }
}

impl Reconciler for PodProbeMarkers {
    fn reconcile(&self, key: &ObjectKey, _memory: &Memory, _now: Timestamp) -> Outcome {
        let cached = self.markers.snapshot().get(key);
        let api_version = self.served.api_version(kruise_api::podprobemarker::RESOURCE);
        let (Some(cached), Ok(api_version)) = (cached, api_version) else {
            return Outcome::Gone;
        };
        let plan = match &cached.object {
            Ok(marker) => self
                .inputs(marker)
                .plan(marker, &api_version, self.options, Explain::No),
            Err(error) => invalid_spec::plan(error),
        };
        Outcome::Plan(Box::new(plan))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let markers = self.markers.snapshot();
        markers.iter().map(|marker| ObjectKey::of(&**marker)).collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let marker = self.markers.snapshot().get(key)?;
        let api_version = self
            .served
            .api_version(kruise_api::podprobemarker::RESOURCE)
            .ok()?;
        Some(ObjectRef::of(&*marker, api_version, KIND.kind))
    }
}
