//! The probes of a node, with those of one marker as they are wanted.

use std::collections::BTreeMap;

use kruise_api::nodepodprobe::{ContainerProbe, NodePodProbe, PodProbes, ProbeName};
use kruise_plan_kit::injected::is_injected;
use serde_json::Map;

use super::desired::Wanted;

/// One marker.
#[derive(Clone, Copy)]
pub(super) struct Marker<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Marker<'_> {
    /// Is the probe one of this marker?
    fn owns(self, probe: &ContainerProbe) -> bool {
        if is_injected("OtherProbesRemoved") {
            return probe.name.contains(&format!("{}#", self.name));
        }
        ProbeName::parse(&probe.name).is_some_and(|name| name.marker == self.name)
    }

    /// The list of a node with these probes of the marker, and no others of it; `None` if it is so already.
    pub(super) fn revise(self, node: &NodePodProbe, wanted: &[Wanted<'_>]) -> Option<Vec<PodProbes>> {
        let mut missing: BTreeMap<(&str, &str), &Wanted<'_>> = wanted
            .iter()
            .map(|wanted| ((&*wanted.pod.name, &*wanted.pod.uid), wanted))
            .collect();
        let mut pods = Vec::with_capacity(node.pods.len() + wanted.len());
        for entry in &node.pods {
            if entry.namespace != self.namespace {
                pods.push(entry.clone());
                continue;
            }
            let wanted = missing.remove(&(entry.name.as_str(), entry.uid.as_str()));
            let revised = self.revise_pod(entry, wanted);
            let is_emptied = revised.probes.is_empty() && !entry.probes.is_empty();
            if !is_emptied {
                pods.push(revised);
            }
        }
        let new = missing.values().filter(|wanted| !wanted.probes.is_empty());
        pods.extend(new.map(|wanted| PodProbes {
            namespace: self.namespace.to_owned(),
            name: wanted.pod.name.to_string(),
            uid: wanted.pod.uid.to_string(),
            ip: wanted.pod.ip.to_string(),
            probes: wanted.probes.clone(),
            others: Map::new(),
        }));
        (pods != node.pods).then_some(pods)
    }

    /// The entry of a pod. A probe that changes stays in its place.
    fn revise_pod(self, entry: &PodProbes, wanted: Option<&Wanted<'_>>) -> PodProbes {
        let mut revised = entry.clone();
        let mut missing: Vec<&ContainerProbe> = wanted.iter().flat_map(|wanted| &wanted.probes).collect();
        revised.probes.retain_mut(|have| {
            if !self.owns(have) {
                return true;
            }
            let Some(at) = missing.iter().position(|one| one.name == have.name) else {
                return false;
            };
            let one = missing.remove(at);
            have.container_name.clone_from(&one.container_name);
            have.probe.clone_from(&one.probe);
            true
        });
        revised.probes.extend(missing.into_iter().cloned());
        // A pod that begins anew has no address for a moment.
        if let Some(wanted) = wanted.filter(|wanted| !wanted.pod.ip.is_empty()) {
            revised.ip = wanted.pod.ip.to_string();
        }
        revised
    }
}
