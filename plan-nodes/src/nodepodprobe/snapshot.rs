//! What a plan is made from.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{nodepodprobe::NodePodProbe, podprobemarker::PodProbeMarker};
use kruise_plan_kit::Memory;
use kruise_views::{NodeView, PodView};

/// One snapshot of a node, its probes, and what they are about.
pub struct Snapshot<'a> {
    /// Name of both.
    pub name: &'a str,
    /// `apiVersion` of a new NodePodProbe: that of the version on the wire.
    pub api_version: &'a str,
    /// The NodePodProbe, if there is one.
    pub probes: Option<&'a NodePodProbe>,
    /// The node, if there is one.
    pub node: Option<&'a NodeView>,
    /// Pods and markers.
    pub cluster: &'a dyn Cluster,
    /// What earlier plans wrote.
    pub memory: &'a Memory,
    /// The time.
    pub now: Timestamp,
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known<T> {
    /// It exists.
    Found(T),
    /// There is none of this name.
    Gone,
    /// It cannot be read, or is of a kind or in a namespace that the manager does not watch.
    Unknown,
}

/// Pods and markers.
pub trait Cluster {
    /// A pod.
    fn pod(&self, namespace: &str, name: &str) -> Known<Arc<PodView>>;

    /// A marker.
    fn marker(&self, namespace: &str, name: &str) -> Known<Arc<PodProbeMarker>>;
}
