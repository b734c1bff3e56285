//! Judges what the controller records, by what it may have believed. A report is for the version of the
//! PersistentPodState that it was made from, so it knew what that said and recorded.

use super::facts::{Change, LAG, ordinal};
use super::wanted::Wanted;
use crate::rules::moments;
use crate::rules::prelude::*;
use crate::subjects::statefulset::oracles::spec::{Gates, Spec};
use crate::subjects::statefulset::start::STATEFULSETS;

/// A report.
struct Judge<'a> {
    change: &'a Change<'a>,
    before: &'a Object,
    wanted: Wanted<'a>,
    mirror: &'a Mirror,
    gates: Gates,
}

/// Judges a write of the status: each record that is another one.
pub fn judge(write: &Write<'_>, change: &Change<'_>, mirror: &Mirror, gates: Gates) -> Option<Violation> {
    let before = change.before?;
    let judge = Judge {
        change,
        before,
        wanted: Wanted::of(before),
        mirror,
        gates,
    };
    let [old, new] = [before, change.after].map(|state| &state.status()["podStates"]);
    let mut dropped = pairs(old).filter(|(name, _)| new[*name].is_null());
    never!(write, "records stay while their pods are wanted or run",
        some (name, record) in dropped.find(|(name, _)| !judge.may_be_dropped(name))
            => "the record of {name} is gone: {record}");
    for (name, record) in pairs(new).filter(|(name, record)| old[*name] != **record) {
        let was = &old[name];
        never!(write, "only pods that are Ready are recorded", !judge.was_ready(name, record) => "{name} as {record}");
        never!(write, "labels of a record are those of its node", !judge.has_labels(record) => "{name} as {record}");
        never!(write, "annotations of a record are those of its pod",
            !judge.has_annotations(name, record) => "{name} as {record}");
        never!(write, "labels that a node lost stay recorded",
            !judge.keeps_labels(record, was) => "{name} as {record}, and was as {was}");
    }
    None
}

impl Judge<'_> {
    fn pods<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p Vec<Arc<Object>>> {
        let pods = self.mirror.of(PODS).objects.values();
        pods.filter(move |versions| versions.first().is_some_and(|pod| &*pod.name == name))
    }

    /// *"A record is made when its pod is Ready."*
    fn was_ready(&self, name: &str, record: &Value) -> bool {
        let mut pods = self.pods(name).flatten();
        pods.any(|pod| {
            pod.is_active() && pod.state("Ready") == "True" && pod.spec()["nodeName"] == record["nodeName"]
        })
    }

    /// Of the labels that are to be recorded, those that the node has or had.
    fn has_labels(&self, record: &Value) -> bool {
        let keys = self.wanted.labels();
        let nodes = self.mirror.of(NODES).objects.values().flatten();
        let nodes: Vec<_> = nodes.filter(|node| record["nodeName"] == *node.name).collect();
        let had = |key: &str, value: &Value| nodes.iter().any(|node| *value == node.label(key));
        pairs(&record["nodeTopologyLabels"]).all(|(key, value)| keys.contains(&key) && had(key, value))
    }

    fn has_annotations(&self, name: &str, record: &Value) -> bool {
        let had = |key: &str, value: &Value| {
            let mut pods = self.pods(name).flatten();
            pods.any(|pod| pod.annotations()[key] == *value)
        };
        let keys = &self.wanted.annotations;
        pairs(&record["annotations"]).all(|(key, value)| keys.contains(&key) && had(key, value))
    }

    /// *"On the node of the record, labels that the node lost stay recorded."*
    fn keeps_labels(&self, record: &Value, before: &Value) -> bool {
        let keys = self.wanted.labels();
        let mut labels = pairs(&before["nodeTopologyLabels"]).filter(|(key, _)| keys.contains(key));
        before["nodeName"] != record["nodeName"]
            || labels.all(|(key, _)| !record["nodeTopologyLabels"][key].is_null())
    }

    /// *"A record is forgotten only if its pod is gone and its ordinal is one that the workload does not have any
    /// more, or if the workload is deleted."*
    fn may_be_dropped(&self, name: &str) -> bool {
        let sets = self.mirror.of(STATEFULSETS).objects.values();
        let believed: Vec<&[Arc<Object>]> = sets
            .map(|versions| self.change.recent(versions))
            // Nobody may believe in one that was gone before.
            .filter(|recent| recent.first().is_some_and(|first| !first.gone))
            .collect();
        let mut all = believed.iter().copied().flatten();
        if believed.is_empty() || all.clone().any(|set| set.is_going()) {
            return true;
        }
        let is_wanted = |set: &Object, one| Spec::of(set, self.gates).slots.contains(&one);
        let is_unwanted = |set: &Arc<Object>| ordinal(name).is_some_and(|one| !is_wanted(set, one));
        let keeps = self.before.spec()["persistentPodStateRetentionPolicy"] == "WhenDeleted";
        !keeps && all.any(is_unwanted) && self.may_be_gone(name)
    }

    /// May it be believed that the workload has no pod of that name?
    fn may_be_gone(&self, name: &str) -> bool {
        let from = moments::before(self.change.after.at, LAG);
        self.pods(name).all(|versions| {
            let is_known = versions.first().is_some_and(|born| born.at <= from);
            let recent = moments::since(versions, from, self.change.after.version);
            // One that left the selector is not the workload's any more.
            !is_known || recent.iter().any(|pod| pod.gone || pod.owner().is_empty())
        })
    }
}
