//! The watch of the node's NodePodProbe, which its manager writes.

use kruise_agent_core::Event;
use kruise_api::nodepodprobe::KIND;
use kruise_plan_kit::ResourceId;

use crate::served::Versions;
use crate::watches::{Collection, Watching, field, send};

/// NodePodProbes.
pub(crate) const NODE_POD_PROBES: ResourceId = kruise_api::nodepodprobe::RESOURCE;

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
