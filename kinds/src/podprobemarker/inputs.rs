//! The input of a plan of a PodProbeMarker: its pods, the nodes and their probes, read from the caches or given.

use std::sync::Arc;

use kruise_api::{nodepodprobe::NodePodProbe, podprobemarker::PodProbeMarker};
use kruise_plan_kit::{Explain, Plan};
use kruise_plan_nodes::podprobemarker::{Nodes, Options, Probes, Snapshot, plan};
use kruise_views::{NodeView, PodView};
use kube_cache::{ObjectKey, SharedInformer};

use super::PodProbeMarkers;
use crate::probes::{CachedProbes, PROBES_BY_MARKER, key};

/// The pods of one PodProbeMarker, and the cluster that they are in.
pub struct Inputs<'a> {
    pods: Vec<Arc<PodView>>,
    nodes: &'a dyn Nodes,
    probes: &'a dyn Probes,
}

impl<'a> Inputs<'a> {
    /// The pods that a marker selects, among those of its namespace.
    pub fn new(
        marker: &PodProbeMarker,
        mut pods: Vec<Arc<PodView>>,
        nodes: &'a dyn Nodes,
        probes: &'a dyn Probes,
    ) -> Self {
        let selector = &marker.spec.selector;
        pods.retain(|pod| selector.matches_by(|key| pod.labels.get(key)));
        Self { pods, nodes, probes }
    }

    /// The pods that the marker selects.
    pub fn pods(&self) -> &[Arc<PodView>] {
        &self.pods
    }

    /// Plans the PodProbeMarker.
    pub fn plan(
        &self,
        marker: &PodProbeMarker,
        api_version: &str,
        options: Options,
        explain: Explain,
    ) -> Plan {
        plan(&Snapshot {
            marker,
            api_version,
            pods: &self.pods,
            nodes: self.nodes,
            probes: self.probes,
            options,
            explain,
        })
    }
}

impl PodProbeMarkers {
    /// Reads the caches.
    pub(super) fn inputs(&self, marker: &PodProbeMarker) -> Inputs<'_> {
        let pods = self.pods.snapshot().list(&marker.metadata.namespace);
        Inputs::new(marker, pods, self, self)
    }
}

impl Nodes for PodProbeMarkers {
    fn is_virtual(&self, name: &str) -> Option<bool> {
        let node = self.nodes.snapshot().get(&ObjectKey::new("", name))?;
        (!node.deleting).then(|| node.is_virtual())
    }
}

impl Probes for PodProbeMarkers {
    fn of_node(&self, name: &str) -> Option<Arc<NodePodProbe>> {
        let cached = self.probes.snapshot().get(&ObjectKey::new("", name))?;
        cached.object.as_ref().ok().cloned()
    }

    fn of_marker(&self, namespace: &str, name: &str) -> Vec<Arc<NodePodProbe>> {
        let probes: &SharedInformer<CachedProbes> = &self.probes;
        let found = probes
            .snapshot()
            .by_index(&PROBES_BY_MARKER, &key(namespace, name));
        found
            .iter()
            .filter_map(|cached| cached.object.as_ref().ok().cloned())
            .collect()
    }
}

/// Nodes of a list.
pub struct ListedNodes(pub Vec<Arc<NodeView>>);

impl Nodes for ListedNodes {
    fn is_virtual(&self, name: &str) -> Option<bool> {
        let node = self.0.iter().find(|node| *node.name == *name)?;
        (!node.deleting).then(|| node.is_virtual())
    }
}
