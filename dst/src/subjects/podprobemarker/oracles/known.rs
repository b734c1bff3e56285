//! What markers, pods and lists say, and what somebody may have believed of them.

use super::super::start::MARKERS;
use crate::rules::belief::Seen;
use crate::rules::prelude::*;

/// A probe of a pod on a node: uid of the pod, `marker#probe`.
pub type Probe = (String, String);

/// The probes that a NodePodProbe lists.
pub fn probes(node: &Object) -> BTreeSet<Probe> {
    let entries = items(&node.value()["spec"]["podProbes"]);
    let probes = entries.flat_map(|entry| {
        let uid = text(&entry["uid"]).to_owned();
        items(&entry["probes"]).map(move |probe| (uid.clone(), text(&probe["name"]).to_owned()))
    });
    probes.collect()
}

/// The results that a NodePodProbe has of the probes of a pod.
pub fn results<'l>(list: &'l Object, pod: &Object) -> impl Iterator<Item = &'l Value> {
    let statuses = items(&list.value()["status"]["podProbeStatuses"]);
    let of_pod = statuses.filter(|status| status["uid"] == *pod.uid);
    of_pod.flat_map(|status| items(&status["probeStates"]))
}

/// Must the sender of a write know that the pod is to be probed?
pub fn is_surely_probed(write: &Write<'_>, mirror: &Mirror, uid: &str) -> bool {
    write.sees(mirror, PODS, uid).must_be(is_probed)
}

/// Is the pod to be probed?
pub fn is_probed(pod: &Object) -> bool {
    let is_bound = !text(&pod.value()["spec"]["nodeName"]).is_empty();
    !pod.gone
        && pod.is_active()
        && is_bound
        && pod.label("app") == "game"
        && pod.state("Initialized") == "True"
}

/// Does the marker have a probe of this name?
pub fn has_probe(marker: &Object, probe: &str) -> bool {
    items(&marker.value()["spec"]["probes"]).any(|one| one["name"] == probe)
}

/// Is there a marker which has this probe, as the sender of a write must know?
pub fn is_surely_wanted(write: &Write<'_>, mirror: &Mirror, name: &str) -> bool {
    markers(write, mirror, name).any(|(marker, probe)| marker.must_be(|one| wants(one, probe)))
}

/// May the sender of a write believe that there is a marker which has this probe?
pub fn may_be_wanted(write: &Write<'_>, mirror: &Mirror, name: &str) -> bool {
    markers(write, mirror, name).any(|(marker, probe)| marker.may_be(|one| wants(one, probe)))
}

fn wants(marker: &Object, probe: &str) -> bool {
    !marker.gone && !marker.is_going() && has_probe(marker, probe)
}

/// All markers that ever had the name in that of a probe, and the rest of that.
fn markers<'m, 'n>(
    write: &Write<'_>,
    mirror: &'m Mirror,
    name: &'n str,
) -> impl Iterator<Item = (Seen<'m>, &'n str)> {
    let (marker, probe) = name.split_once('#').unwrap_or_default();
    let all = write
        .sees_all(mirror, MARKERS)
        .filter(move |seen| seen.name() == marker);
    all.map(move |seen| (seen, probe))
}
