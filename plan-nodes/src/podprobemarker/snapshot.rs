//! What a plan is made from.

use std::sync::Arc;

use kruise_api::{nodepodprobe::NodePodProbe, podprobemarker::PodProbeMarker};
use kruise_plan_kit::Explain;
use kruise_views::PodView;

/// One snapshot of a marker, its pods, and the probes of nodes.
pub struct Snapshot<'a> {
    /// The marker.
    pub marker: &'a PodProbeMarker,
    /// `apiVersion` for events: that of the version on the wire.
    pub api_version: &'a str,
    /// The pods of its namespace that its selector matches, in any state.
    pub pods: &'a [Arc<PodView>],
    /// The nodes.
    pub nodes: &'a dyn Nodes,
    /// The probes of nodes.
    pub probes: &'a dyn Probes,
    /// Gates.
    pub options: Options,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// Gates that change decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Pods of virtual nodes are marked: gate `EnablePodProbeMarkerOnServerless`.
    pub marks_serverless: bool,
}

/// The nodes.
pub trait Nodes {
    /// Is the node a virtual one, which has no agent? `None` if there is no such node.
    fn is_virtual(&self, name: &str) -> Option<bool>;
}

/// The NodePodProbes.
pub trait Probes {
    /// That of a node.
    fn of_node(&self, name: &str) -> Option<Arc<NodePodProbe>>;

    /// All that have a probe of this marker.
    fn of_marker(&self, namespace: &str, name: &str) -> Vec<Arc<NodePodProbe>>;
}

impl Probes for Vec<Arc<NodePodProbe>> {
    fn of_node(&self, name: &str) -> Option<Arc<NodePodProbe>> {
        self.iter().find(|node| node.metadata.name == name).cloned()
    }

    fn of_marker(&self, namespace: &str, name: &str) -> Vec<Arc<NodePodProbe>> {
        let listed = |node: &&Arc<NodePodProbe>| {
            node.markers()
                .any(|(within, marker)| within == namespace && marker == name)
        };
        self.iter().filter(listed).cloned().collect()
    }
}
