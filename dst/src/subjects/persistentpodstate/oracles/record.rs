//! Judges what the controller records, by what it may have believed. A report is for the version of the PersistentPodState that it
//! was made from, so it knew what that said and recorded.

use serde_json::Map;

use super::known::{Change, LAG, before};
use super::wanted::Wanted;
use crate::rules::moments;
use crate::rules::prelude::*;
use crate::subjects::statefulset::oracles::spec::{Gates, Spec};
use crate::subjects::statefulset::start::STATEFULSETS;

/// Judges a write of the status.
pub fn judge(change: &Change<'_>, mirror: &Mirror, gates: Gates) -> Option<Violation> {
    let before = change.before?;
    let judge = Judge {
        change,
        before,
        wanted: Wanted::of(before),
        mirror,
        gates,
    };
    judge.judge()
}

fn records(state: &Object) -> Map<String, Value> {
    let records = state.value()["status"]["podStates"].as_object();
    records.cloned().unwrap_or_default()
}

/// A report.
struct Judge<'a> {
    change: &'a Change<'a>,
    before: &'a Object,
    wanted: Wanted<'a>,
    mirror: &'a Mirror,
    gates: Gates,
}

impl Judge<'_> {
    /// Judges each record that is another one.
    fn judge(&self) -> Option<Violation> {
        let (old, new) = (records(self.before), records(self.change.after));
        let mut dropped = old.keys().filter(|name| !new.contains_key(*name));
        never!(Violation::of, "records stay while their pods are wanted or run",
            some name in dropped.find(|name| !self.may_be_dropped(name))
                => "the record of {name} is gone: {}", old[name]);
        new.iter().find_map(|(name, record)| {
            let before = old.get(name);
            if before == Some(record) {
                return None;
            }
            let broken = self.broken(name, record, before.unwrap_or(&Value::Null))?;
            Some(Violation {
                oracle: broken,
                what: format!("{name} is recorded as {record}, and was as {before:?}"),
            })
        })
    }

    /// The first rule that a new or changed record breaks.
    fn broken(&self, name: &str, record: &Value, before: &Value) -> Option<&'static str> {
        let rules: [(&'static str, &dyn Fn() -> bool); 4] = [
            ("only pods that are Ready are recorded", &|| {
                self.was_ready(name, record)
            }),
            ("labels of a record are those of its node", &|| {
                self.has_labels(record)
            }),
            ("annotations of a record are those of its pod", &|| {
                self.has_annotations(name, record)
            }),
            ("labels that a node lost stay recorded", &|| {
                self.keeps_labels(record, before)
            }),
        ];
        let broken = rules.into_iter().find(|(_, holds)| !holds());
        broken.map(|(oracle, _)| oracle)
    }

    fn pods<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p Vec<Arc<Object>>> {
        let pods = self.mirror.of(PODS).objects.values();
        pods.filter(move |versions| versions.first().is_some_and(|pod| &*pod.name == name))
    }

    /// *"A record is made when its pod is Ready."*
    fn was_ready(&self, name: &str, record: &Value) -> bool {
        let mut pods = self.pods(name).flatten();
        pods.any(|pod| {
            pod.is_active()
                && pod.state("Ready") == "True"
                && pod.value()["spec"]["nodeName"] == record["nodeName"]
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
            pods.any(|pod| pod.value()["metadata"]["annotations"][key] == *value)
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

    /// *"A record is forgotten only if its pod is gone and its ordinal is one that the workload does not have any more, or if the
    /// workload is deleted."*
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
        let ordinal = name
            .rsplit_once('-')
            .and_then(|(_, number)| number.parse::<i64>().ok());
        let is_unwanted =
            |set: &Arc<Object>| ordinal.is_some_and(|one| !Spec::of(set, self.gates).slots.contains(&one));
        let keeps = self.before.value()["spec"]["persistentPodStateRetentionPolicy"] == "WhenDeleted";
        !keeps && all.any(is_unwanted) && self.may_be_gone(name)
    }

    /// May it be believed that the workload has no pod of that name?
    fn may_be_gone(&self, name: &str) -> bool {
        let from = before(self.change.after.at, LAG);
        self.pods(name).all(|versions| {
            let is_known = versions.first().is_some_and(|born| born.at <= from);
            let recent = moments::since(versions, from, self.change.after.version);
            // One that left the selector is not the workload's any more.
            !is_known || recent.iter().any(|pod| pod.gone || pod.owner().is_empty())
        })
    }
}
