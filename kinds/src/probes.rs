//! Caches that the controllers of probes share.

use std::sync::Arc;

use kruise_api::{nodepodprobe::NodePodProbe, podprobemarker::PodProbeMarker};
use kruise_frame::caches::{NODES, PODS};
use kruise_runtime::caches::{CacheId, Reach};
use kruise_runtime::parsed::Parsed;
use kube_cache::Index;

/// A PodProbeMarker in a cache.
pub type CachedMarker = Parsed<Arc<PodProbeMarker>>;
/// A NodePodProbe in a cache.
pub type CachedProbes = Parsed<Arc<NodePodProbe>>;

/// NodePodProbes by the markers that have probes there: see [`key`].
pub const PROBES_BY_MARKER: Index<CachedProbes> = Index::new("marker", |cached| {
    let markers = cached.object.iter().flat_map(|node| node.markers());
    let mut keys: Vec<Box<str>> = markers
        .map(|(namespace, name)| key(namespace, name).into())
        .collect();
    keys.sort();
    keys.dedup();
    keys
});

/// Key of a marker in [`PROBES_BY_MARKER`].
pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// PodProbeMarkers. Those of a namespace are a range of the cache.
pub const POD_PROBE_MARKERS: CacheId<CachedMarker> =
    CacheId::of("podprobemarkers", kruise_api::podprobemarker::RESOURCE);

/// NodePodProbes. They are listed before the nodes, pods and markers that they name, so that what is missing there
/// is gone.
pub const NODE_POD_PROBES: CacheId<CachedProbes> =
    CacheId::of("nodepodprobes", kruise_api::nodepodprobe::RESOURCE)
        .reach(Reach::Cluster)
        .indexed(&[PROBES_BY_MARKER])
        .before(&[NODES.name, PODS.name, POD_PROBE_MARKERS.name]);
