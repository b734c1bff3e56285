//! Removal of pods and probes that nobody wants.

use kruise_api::nodepodprobe::{NodePodProbe, PodProbes, ProbeName};
use kruise_plan_kit::ObjectWrites;

use super::snapshot::{Known, Snapshot};
use crate::probes;

/// The write that leaves what is wanted, if something is not.
pub(super) fn tidy(snapshot: &Snapshot<'_>, node: &NodePodProbe) -> Option<ObjectWrites> {
    let kept: Vec<PodProbes> = node.pods.iter().filter_map(|pod| kept(snapshot, pod)).collect();
    if kept == node.pods {
        return None;
    }
    let reason = match node.pods.len() - kept.len() {
        0 => "markers of some probes are gone".to_owned(),
        1 => "1 pod is gone, or has no probe any more".to_owned(),
        count => format!("{count} pods are gone, or have no probes any more"),
    };
    Some(probes::replace(node, &kept, probes::TIDY_PROBES, reason))
}

/// The entry of a pod without probes of markers that are gone; `None` if nothing is left of it.
fn kept(snapshot: &Snapshot<'_>, entry: &PodProbes) -> Option<PodProbes> {
    let is_there = match snapshot.cluster.pod(&entry.namespace, &entry.name) {
        Known::Found(pod) => *pod.uid == *entry.uid && pod.is_active(),
        Known::Gone => false,
        Known::Unknown => true,
    };
    if !is_there {
        return None;
    }
    let mut kept = entry.clone();
    kept.probes.retain(|probe| {
        let marker = ProbeName::parse(&probe.name).map(|name| name.marker);
        marker.is_none_or(|marker| snapshot.cluster.marker(&entry.namespace, marker) != Known::Gone)
    });
    let is_emptied = kept.probes.is_empty() && !entry.probes.is_empty();
    (!is_emptied).then_some(kept)
}
