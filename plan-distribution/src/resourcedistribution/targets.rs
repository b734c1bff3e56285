//! Which namespaces get a copy.

use std::collections::BTreeMap;

use kruise_api::{
    names::resourcedistribution::{REACHES_SYSTEM_NAMESPACES, SYSTEM_NAMESPACES},
    resourcedistribution::ResourceDistribution,
};
use kruise_views::Labels;

use super::snapshot::Snapshot;

/// The namespaces of a snapshot, sorted by name.
pub(super) struct Targets<'a> {
    /// Those that are to have a copy, with whether they exist and are not being deleted.
    pub(super) matched: BTreeMap<&'a str, bool>,
    /// The others that exist and are not being deleted.
    pub(super) others: Vec<&'a str>,
}

impl<'a> Targets<'a> {
    pub(super) fn of(snapshot: &Snapshot<'a>) -> Self {
        let distribution = snapshot.distribution;
        let included = distribution.spec.targets.included_namespaces.names();
        let mut matched: BTreeMap<&str, bool> = included
            .filter(|name| may_have_one(distribution, name))
            .map(|name| (name, false))
            .collect();
        let mut others = Vec::new();
        for namespace in snapshot.namespaces {
            let (name, is_there) = (namespace.name(), !namespace.is_terminating());
            if selects(distribution, name, namespace.labels()) {
                matched.insert(name, is_there);
            } else if is_there {
                others.push(name);
            }
        }
        others.sort_unstable();
        Self { matched, others }
    }
}

/// Is a namespace of this name and these labels to have a copy?
pub fn selects(distribution: &ResourceDistribution, name: &str, labels: &Labels) -> bool {
    let targets = &distribution.spec.targets;
    let selector = &targets.namespace_selector;
    may_have_one(distribution, name)
        && (targets.all_namespaces
            || targets.included_namespaces.contains(name)
            || !selector.is_empty() && selector.matches_by(|key| labels.get(key)))
}

/// What is excluded gets none, whatever else selects it.
fn may_have_one(distribution: &ResourceDistribution, name: &str) -> bool {
    !is_reserved(distribution, name) && !distribution.spec.targets.excluded_namespaces.contains(name)
}

/// Is this a system namespace, which the ResourceDistribution does not reach?
pub(super) fn is_reserved(distribution: &ResourceDistribution, name: &str) -> bool {
    let reaches = distribution.metadata.annotations.get(REACHES_SYSTEM_NAMESPACES);
    SYSTEM_NAMESPACES.contains(&name) && reaches.is_none_or(|value| value != "true")
}
