//! The watch of the node's NodePodProbe, which its manager writes.

use std::sync::atomic::AtomicBool;

use kruise_agent_core::{Event, NodePodProbeView};
use kruise_api::nodepodprobe::KIND;
use kruise_plan_kit::ResourceId;
use kube_cache::SharedInformer;

use crate::served::Versions;
use crate::watches::{Collection, Watching, field, send};

/// NodePodProbes.
pub(crate) const NODE_POD_PROBES: ResourceId = ResourceId::NODE_POD_PROBES;

/// What is known of the NodePodProbe.
pub(crate) struct Probes {
    pub(crate) informer: SharedInformer<NodePodProbeView>,
    /// The cluster does not serve NodePodProbes.
    pub(crate) are_not_served: AtomicBool,
}

impl Probes {
    /// Nothing is known yet.
    pub(crate) fn new() -> Self {
        Self {
            informer: SharedInformer::new([]),
            are_not_served: AtomicBool::new(false),
        }
    }
}

impl Watching {
    /// Follows the NodePodProbe of the node, if probes are run.
    pub(crate) async fn probes(self, versions: Versions) {
        let Some(probes) = &self.checks.probes else {
            return;
        };
        let collection = Collection {
            kind: &KIND,
            selector: field("metadata.name", &self.node),
            is_not_served: &probes.are_not_served,
            consequence: "no probe is run",
            versions,
        };
        self.follow_served(&collection, &probes.informer, |delta| {
            let event = delta.new.map_or(Event::NodePodProbeDeleted, Event::NodePodProbe);
            send(&self.news, event);
        })
        .await;
    }
}
