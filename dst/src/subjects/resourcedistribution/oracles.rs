//! Oracles of ResourceDistributions, written from their specification.

use super::start::{COPY, DISTRIBUTIONS, EXCLUDED};
use crate::rules::prelude::*;
use crate::rules::settled::observed;

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
    text(&object.metadata()["namespace"])
}

/// Does the ResourceDistribution select the namespace?
fn is_selected(distribution: &Object, namespace: &Object) -> bool {
    if SYSTEM.contains(&&*namespace.name) || &*namespace.name == EXCLUDED {
        return false;
    }
    let targets = &distribution.spec()["targets"];
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
        let of_copies = write.resource == self.copies.plural;
        let change = write.change(mirror, self.copies).filter(|_| of_copies)?;
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
        observed(distribution)?;
        let (mut desired, mut succeeded) = (0, 0);
        let data = &distribution.spec()["resource"]["data"];
        for namespace in mirror.of(NAMESPACES).now() {
            let name = &*namespace.name;
            let selected = is_selected(distribution, namespace);
            desired += i64::from(selected);
            if namespace.is_going() {
                continue;
            }
            let copy = self.copy(mirror, name);
            wrong!(copy.is_none() && selected => "{name} has no copy");
            let Some(copy) = copy.filter(|copy| copy.owner() == &*distribution.uid) else {
                continue;
            };
            wrong!(!selected => "a copy is left in {name}");
            let is_current = copy.value()["data"] == *data;
            wrong!(!is_current && !self.refused => "the copy in {name} has other data");
            succeeded += i64::from(is_current);
        }
        let counts = ["desired", "succeeded", "failed"].map(|member| number(&distribution.status()[member]));
        wrong!(counts != [desired, succeeded, desired - succeeded]
            => "status counts {counts:?}, not {desired} and {succeeded}");
        Ok(())
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(self.copies.plural) >= WRITES
    }
}
