//! Oracles of ResourceDistributions, written from their specification.

use jiff::Timestamp;
use kruise_sim::Method;
use serde_json::Value;

use super::start::{CONTROLLER, COPY, DISTRIBUTIONS, EXCLUDED};
use crate::engine::oracles::{Counters, Mirror, NAMESPACES, Object, Oracles, Resource, Violation, Write};

/// Least of writes of copies for a scenario to count.
const WRITES: u32 = 12;
/// Namespaces that get no copy.
const SYSTEM: [&str; 2] = ["kube-public", "kube-system"];

/// What judges the ResourceDistribution of a scenario.
pub struct ResourceDistributionOracles {
    /// The resource of its copies.
    pub copies: Resource,
    /// A policy of somebody else refuses all updates of copies.
    pub refused: bool,
}

fn namespace_of(object: &Object) -> &str {
    object.value()["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default()
}

/// Does the ResourceDistribution select the namespace?
fn is_selected(distribution: &Object, namespace: &Object) -> bool {
    if SYSTEM.contains(&&*namespace.name) || &*namespace.name == EXCLUDED {
        return false;
    }
    let targets = &distribution.value()["spec"]["targets"];
    let team = targets["namespaceSelector"]["matchLabels"]["team"].as_str();
    targets["allNamespaces"] == true || team.is_some_and(|team| namespace.label("team") == team)
}

impl ResourceDistributionOracles {
    /// What has the name of the copy in a namespace.
    fn copy<'m>(&self, mirror: &'m Mirror, namespace: &str) -> Option<&'m Object> {
        let mut all = mirror.of(self.copies).now();
        all.find(|object| &*object.name == COPY && namespace_of(object) == namespace)
            .map(|object| &**object)
    }
}

impl Oracles for ResourceDistributionOracles {
    /// *"An object that the ResourceDistribution does not control is never touched."*
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER || write.resource != self.copies.plural {
            return None;
        }
        let log = mirror.of(self.copies);
        let place = write.marks.of(self.copies);
        let version = log.changes.get(place)?.version;
        let versions = log.changed_at(place)?;
        let index = versions.iter().position(|object| object.version == version)?;
        let written = versions.get(index)?;
        let violation = |oracle, what: &str| {
            let namespace = namespace_of(written);
            let what = format!("{} wrote {namespace}/{}: {what}", write.process, written.name);
            Some(Violation { oracle, what })
        };
        if &*written.name != COPY {
            return violation("only copies are written", "it has another name");
        }
        let mut controllers = mirror.of(DISTRIBUTIONS).objects.keys();
        let before = match write.method {
            Method::Post => written,
            Method::Delete => versions.get(index.saturating_sub(1))?,
            _ => index.checked_sub(1).and_then(|before| versions.get(before))?,
        };
        if !controllers.any(|uid| **uid == *before.owner()) {
            return violation(
                "foreign objects stay",
                "the ResourceDistribution does not control it",
            );
        }
        let namespace = namespace_of(written);
        if write.method == Method::Post && (SYSTEM.contains(&namespace) || namespace == EXCLUDED) {
            return violation("excluded namespaces get no copy", "it is excluded");
        }
        None
    }

    /// *"Every selected namespace has the copy, and no other one has it."*
    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        let Some(distribution) = mirror.of(DISTRIBUTIONS).named(COPY) else {
            return Ok(());
        };
        let (mut desired, mut succeeded) = (0, 0);
        let data = &distribution.value()["spec"]["resource"]["data"];
        for namespace in mirror.of(NAMESPACES).now() {
            let name = &*namespace.name;
            let selected = is_selected(distribution, namespace);
            desired += i64::from(selected);
            if namespace.is_going() {
                continue;
            }
            let copy = self.copy(mirror, name);
            let is_ours = |copy: &&Object| copy.owner() == &*distribution.uid;
            match copy {
                None if selected => return Err(format!("{name} has no copy")),
                Some(copy) if selected && is_ours(&copy) => {
                    let is_current = copy.value()["data"] == *data;
                    if !is_current && !self.refused {
                        return Err(format!("the copy in {name} has other data"));
                    }
                    succeeded += i64::from(is_current);
                }
                Some(copy) if is_ours(&copy) => return Err(format!("a copy is left in {name}")),
                _ => {}
            }
        }
        let status = &distribution.value()["status"];
        let count = |member: &str| status[member].as_i64().unwrap_or(0);
        let counts = ["desired", "succeeded", "failed"].map(count);
        if counts != [desired, succeeded, desired - succeeded] {
            return Err(format!("status counts {counts:?}, not {desired} and {succeeded}"));
        }
        let generation = &distribution.value()["metadata"]["generation"];
        if status["observedGeneration"] != *generation {
            return Err(format!("status is not of generation {generation}"));
        }
        Ok(())
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(self.copies.plural) >= WRITES
    }

    fn remembers_pods(&self) -> bool {
        false
    }
}
