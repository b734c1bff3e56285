//! What markers, pods and lists say, and what somebody may have believed of them.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use crate::engine::oracles::{Mirror, Object, PODS, Resource, Write};
use crate::subjects::podprobemarker::start::MARKERS;

/// A probe of a pod on a node: uid of the pod, `marker#probe`.
pub type Probe = (String, String);

/// The items of a list.
pub fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The probes that a NodePodProbe lists.
pub fn probes(node: &Object) -> BTreeSet<Probe> {
    let entries = items(&node.value()["spec"]["podProbes"]);
    let probes = entries.flat_map(|entry| {
        let uid = text(&entry["uid"]);
        items(&entry["probes"]).map(move |probe| (uid.clone(), text(&probe["name"])))
    });
    probes.collect()
}

/// A text.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The object before and after a write.
pub fn change<'m>(write: &Write<'_>, mirror: &'m Mirror, of: Resource) -> Option<(&'m Object, &'m Object)> {
    let log = mirror.of(of);
    let versions = log.changed_at(write.marks.of(of))?;
    let version = log.changes.get(write.marks.of(of))?.version;
    let place = versions.iter().position(|one| one.version == version)?;
    let (before, after) = (versions.get(place.checked_sub(1)?)?, versions.get(place)?);
    Some((&**before, &**after))
}

/// The versions of an object that the sender of a write may have believed, if it must know the object.
fn surely<'m>(write: &Write<'_>, mirror: &'m Mirror, of: Resource, uid: &str) -> Option<&'m [Arc<Object>]> {
    let floor = write.sent.floors.of(of);
    let versions = mirror.of(of).window(uid, floor);
    let is_known = versions.first().is_some_and(|first| first.version <= floor);
    is_known.then_some(versions)
}

/// Must the sender of a write know that the pod is to be probed?
pub fn is_surely_probed(write: &Write<'_>, mirror: &Mirror, uid: &str) -> bool {
    let versions = surely(write, mirror, PODS, uid);
    versions.is_some_and(|versions| versions.iter().all(|pod| is_probed(pod)))
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

/// Must the sender of a write know that there is a marker which has this probe?
pub fn is_surely_wanted(write: &Write<'_>, mirror: &Mirror, name: &str) -> bool {
    let Some((marker, probe)) = name.split_once('#') else {
        return false;
    };
    let named = uids(mirror, marker);
    named
        .iter()
        .filter_map(|uid| surely(write, mirror, MARKERS, uid))
        .any(|versions| {
            let wants = |one: &Arc<Object>| !one.gone && !one.is_going() && has_probe(one, probe);
            versions.iter().all(wants)
        })
}

/// May the sender of a write believe that there is a marker which has this probe?
pub fn may_be_wanted(write: &Write<'_>, mirror: &Mirror, name: &str) -> bool {
    let Some((marker, probe)) = name.split_once('#') else {
        return false;
    };
    let floor = write.sent.floors.of(MARKERS);
    uids(mirror, marker).iter().any(|uid| {
        let versions = mirror.of(MARKERS).window(uid, floor);
        versions
            .iter()
            .any(|one| !one.gone && !one.is_going() && has_probe(one, probe))
    })
}

/// Uids of all markers that ever had a name.
fn uids(mirror: &Mirror, name: &str) -> Vec<Arc<str>> {
    let all = mirror.of(MARKERS).objects.iter();
    let named = all.filter(|(_, versions)| versions.first().is_some_and(|one| *one.name == *name));
    named.map(|(uid, _)| uid.clone()).collect()
}
