//! PodProbeMarker: the registration of its controller, and the reconciler.

mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use kruise_api::definition::Kind;
use kruise_api::podprobemarker::KIND;
use kruise_frame::{
    caches::{NODES, PODS},
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Plan, ResourceId};
use kruise_plan_nodes::podprobemarker::Options;
use kruise_runtime::worker::Reconciler;
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{NodeView, PodView};
use kube_cache::SharedInformer;

use super::probes::{CachedMarker, CachedProbes, NODE_POD_PROBES, POD_PROBE_MARKERS};
use kruise_api::podprobemarker::PodProbeMarker;

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

impl KindReconciler for PodProbeMarkers {
    type Object = Arc<PodProbeMarker>;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<CachedMarker> {
        &self.markers
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, marker: &Self::Object, round: Round<'_>) -> Option<Plan> {
        Some(
            self.inputs(marker)
                .plan(marker, round.api_version, self.options, Explain::No),
        )
    }
}
