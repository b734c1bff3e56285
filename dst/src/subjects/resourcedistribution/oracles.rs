//! Oracles of ResourceDistributions, written from their specification.

use super::start::{CONTROLLER, COPY, DISTRIBUTIONS, EXCLUDED};
use crate::rules::prelude::*;

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
    text(&object.value()["metadata"]["namespace"])
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
        let change = write.change(mirror, self.copies)?;
        let written = change.after;
        let namespace = namespace_of(written);
        never!(write, "only copies are written", &*written.name != COPY => "it has another name");
        let before = match write.method {
            Method::Post => written,
            Method::Delete => change.before().unwrap_or(written),
            _ => change.before()?,
        };
        let is_ours = mirror.of(DISTRIBUTIONS).objects.contains_key(before.owner());
        never!(write, "foreign objects stay", !is_ours => "the ResourceDistribution does not control it in {namespace}");
        never!(write, "excluded namespaces get no copy",
            write.method == Method::Post && (SYSTEM.contains(&namespace) || namespace == EXCLUDED) => "{namespace} is");
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
                    wrong!(!is_current && !self.refused => "the copy in {name} has other data");
                    succeeded += i64::from(is_current);
                }
                Some(copy) if is_ours(&copy) => return Err(format!("a copy is left in {name}")),
                _ => {}
            }
        }
        let status = &distribution.value()["status"];
        let count = |member: &str| number(&status[member]);
        let counts = ["desired", "succeeded", "failed"].map(count);
        wrong!(counts != [desired, succeeded, desired - succeeded]
            => "status counts {counts:?}, not {desired} and {succeeded}");
        let generation = &distribution.value()["metadata"]["generation"];
        wrong!(status["observedGeneration"] != *generation => "status is not of generation {generation}");
        Ok(())
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(self.copies.plural) >= WRITES
    }

    fn remembers_pods(&self) -> bool {
        false
    }
}
