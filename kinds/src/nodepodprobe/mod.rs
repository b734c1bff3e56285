//! NodePodProbe: the registration of its controller, and the reconciler. A key is the name of a node.

mod keys;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kruise_api::{nodepodprobe::KIND, podprobemarker::PodProbeMarker};
use kruise_frame::{
    caches::{NODES, PODS},
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Memory, ResourceId};
use kruise_plan_nodes::nodepodprobe::{Cluster, Known, Snapshot, plan};
use kruise_runtime::{
    Served,
    events::ObjectRef,
    metrics::objects::Spec,
    worker::{Outcome, Reconciler},
};
use kruise_views::{NodeView, PodView};
use kube_cache::{ObjectKey, SharedInformer};

use super::probes::{CachedMarker, CachedProbes, NODE_POD_PROBES, POD_PROBE_MARKERS, PROBES_BY_MARKER, key};
use kruise_runtime::invalid_spec;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<NodePodProbes>("NodePodProbe-controller", 3)
    .reconciles(
        &KIND,
        "nodepodprobe-workers",
        "NodePodProbes handled side by side",
    )
    .gated(&["PodProbeMarkerGate"])
    .watching(&[ResourceId::NODES, kruise_api::podprobemarker::RESOURCE])
    .granted(&[
        Grant::on(kruise_api::nodepodprobe::RESOURCE, &["create", "delete", "patch"]),
        Grant::on(ResourceId::PODS, &["patch"]),
        Grant::on(ResourceId::PODS, &["patch"]).part("status"),
    ])
    .measured(&OVERDUE, &[]);

const OVERDUE: Spec = Spec::overdue_writes("nodepodprobe_expectation_leakage");

/// Reconciles the NodePodProbe of one node from the caches.
pub struct NodePodProbes {
    probes: SharedInformer<CachedProbes>,
    nodes: SharedInformer<NodeView>,
    pods: SharedInformer<PodView>,
    /// The markers, if they are served.
    markers: Option<SharedInformer<CachedMarker>>,
    /// The only namespace that is watched, if it is one.
    namespace: Option<String>,
    served: Arc<Served>,
}

impl Controls for NodePodProbes {
    fn new(setup: &mut Setup<'_>) -> Self {
        let watches_markers = setup
            .parts
            .served
            .version(kruise_api::podprobemarker::RESOURCE)
            .is_some();
        let markers = setup.cache(&POD_PROBE_MARKERS);
        Self {
            probes: setup.cache(&NODE_POD_PROBES),
            nodes: setup.cache(&NODES),
            pods: setup.cache(&PODS),
            markers: watches_markers.then_some(markers),
            namespace: setup.parts.config.namespace.clone(),
            served: setup.parts.served.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&NODE_POD_PROBES);
        wiring.maps(&NODES, |this, delta| {
            keys::of_node(delta, &|name| this.of_node(name).is_some())
        });
        wiring.maps(&PODS, |this, delta| {
            keys::of_pod(delta, &|name| this.of_node(name))
        });
        wiring.maps(&POD_PROBE_MARKERS, |this, delta| {
            keys::of_marker(delta, &|marker| {
                let (namespace, name) = (&marker.metadata.namespace, &marker.metadata.name);
                this.probes
                    .snapshot()
                    .by_index(&PROBES_BY_MARKER, &key(namespace, name))
            })
        });
    }
}

impl NodePodProbes {
    fn of_node(&self, name: &str) -> Option<Arc<CachedProbes>> {
        self.probes.snapshot().get(&ObjectKey::new("", name))
    }

    fn is_watched(&self, namespace: &str) -> bool {
        self.namespace
            .as_deref()
            .is_none_or(|watched| watched == namespace)
    }
}

impl Cluster for NodePodProbes {
    fn pod(&self, namespace: &str, name: &str) -> Known<Arc<PodView>> {
        if !self.is_watched(namespace) {
            return Known::Unknown;
        }
        let pod = self.pods.snapshot().get(&ObjectKey::new(namespace, name));
        pod.map_or(Known::Gone, Known::Found)
    }

    fn marker(&self, namespace: &str, name: &str) -> Known<Arc<PodProbeMarker>> {
        let markers = self.markers.as_ref().filter(|_| self.is_watched(namespace));
        let Some(markers) = markers else {
            return Known::Unknown;
        };
        let cached = markers.snapshot().get(&ObjectKey::new(namespace, name));
        match cached.as_ref().map(|cached| &cached.object) {
            Some(Ok(marker)) => Known::Found(marker.clone()),
            Some(Err(_)) => Known::Unknown,
            None => Known::Gone,
        }
    }
}

impl Reconciler for NodePodProbes {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let cached = self.probes.snapshot().get(key);
        let node = self.nodes.snapshot().get(key);
        let Ok(api_version) = self.served.api_version(kruise_api::nodepodprobe::RESOURCE) else {
            return Outcome::Gone;
        };
        if cached.is_none() && node.is_none() {
            return Outcome::Gone;
        }
        let probes = match cached.as_ref().map(|cached| &cached.object) {
            Some(Err(error)) => return Outcome::Plan(Box::new(invalid_spec::plan(error))),
            Some(Ok(probes)) => Some(&**probes),
            None => None,
        };
        let snapshot = Snapshot {
            name: &key.name,
            api_version: &api_version,
            probes,
            node: node.as_deref(),
            cluster: self,
            memory,
            now,
        };
        Outcome::Plan(Box::new(plan(&snapshot)))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: BTreeSet<ObjectKey> = BTreeSet::new();
        keys.extend(self.probes.snapshot().iter().map(|one| ObjectKey::of(&**one)));
        keys.extend(self.nodes.snapshot().iter().map(|node| ObjectKey::of(&**node)));
        keys.into_iter().collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let probes = self.probes.snapshot().get(key)?;
        let api_version = self.served.api_version(kruise_api::nodepodprobe::RESOURCE).ok()?;
        Some(ObjectRef::of(&*probes, api_version, KIND.kind))
    }
}
