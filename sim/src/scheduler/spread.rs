//! Topology spread constraints: how unevenly pods may lie over domains of nodes.
//!
//! A domain counts if one of its nodes matches the pod's node selector and affinity. Constraints that are hard keep a
//! node out when the skew would be exceeded; soft ones only order nodes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::affinity;
use super::node::{Labels, Node, Placed};
use crate::store::Key;

const SKEWED: &str = "node(s) didn't match pod topology spread constraints";
const UNLABELLED: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// A pod's constraints over the nodes as they are.
#[derive(Debug)]
pub(super) struct Constraints(Vec<Constraint>);

#[derive(Debug)]
struct Constraint {
    key: String,
    hard: bool,
    skew: usize,
    /// The pod counts itself.
    own: usize,
    /// Matching pods by domain.
    domains: BTreeMap<String, usize>,
    /// The least count, or nothing if there are fewer domains than wanted.
    least: usize,
}

impl Constraints {
    pub(super) fn of(
        pod: &Value,
        namespace: &str,
        nodes: &[(&String, &Node)],
        placed: &BTreeMap<Key, Placed>,
    ) -> Self {
        let list = pod
            .pointer("/spec/topologySpreadConstraints")
            .and_then(Value::as_array);
        let own = super::node::labels(pod);
        let constraints = list.into_iter().flatten().map(|one| {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
            let number = |name: &str| one.get(name).and_then(Value::as_u64).unwrap_or(1) as usize;
            let key = text("topologyKey");
            let eligible = nodes
                .iter()
                .filter(|(name, node)| affinity::matches(pod, name, &node.labels));
            let by_node: BTreeMap<&str, &String> = eligible
                .filter_map(|(name, node)| Some((name.as_str(), node.labels.get(key)?)))
                .collect();
            let mut domains: BTreeMap<String, usize> =
                by_node.values().map(|domain| ((*domain).clone(), 0)).collect();
            for (_, other) in placed
                .iter()
                .filter(|(key, _)| key.namespace.as_ref() == namespace)
            {
                let domain = by_node
                    .get(other.node.as_str())
                    .and_then(|domain| domains.get_mut(*domain));
                if let Some(count) = domain.filter(|_| !other.leaving && selects(one, &own, &other.labels)) {
                    *count += 1;
                }
            }
            let least = if domains.len() < number("minDomains") {
                0
            } else {
                domains.values().min().copied().unwrap_or_default()
            };
            Constraint {
                key: key.to_owned(),
                hard: text("whenUnsatisfiable") != "ScheduleAnyway",
                skew: number("maxSkew"),
                own: usize::from(selects(one, &own, &own)),
                domains,
                least,
            }
        });
        Self(constraints.collect())
    }

    /// Why a node is out.
    pub(super) fn refuses(&self, node: &Node) -> Option<&'static str> {
        self.0.iter().filter(|one| one.hard).find_map(|one| {
            let Some(domain) = node.labels.get(&one.key) else {
                return Some(UNLABELLED);
            };
            let count = one.domains.get(domain).copied().unwrap_or_default();
            (count + one.own > one.skew + one.least).then_some(SKEWED)
        })
    }

    /// How many matching pods lie in the node's domains of all constraints.
    pub(super) fn cost(&self, node: &Node) -> usize {
        let counts = self.0.iter().map(|one| {
            let domain = node.labels.get(&one.key);
            domain.map_or(usize::MAX / 16, |domain| {
                one.domains.get(domain).copied().unwrap_or_default()
            })
        });
        counts.sum()
    }
}

/// Whether the constraint's selector shows a pod; `own` are the labels of the pod that has the constraint.
fn selects(constraint: &Value, own: &Labels, labels: &Labels) -> bool {
    let Some(selector) = constraint.get("labelSelector") else {
        return false;
    };
    let items = |name: &str| selector.get(name).and_then(Value::as_array).into_iter().flatten();
    let equal = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let keys = constraint.get("matchLabelKeys").and_then(Value::as_array);
    let mut same = keys.into_iter().flatten().filter_map(Value::as_str);
    equal
        .into_iter()
        .all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
        && same.all(|key| own.get(key).is_none_or(|value| labels.get(key) == Some(value)))
        && items("matchExpressions").all(|one| {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
            let found = labels.get(text("key"));
            let values = one.get("values").and_then(Value::as_array);
            let among =
                found.is_some_and(|found| values.into_iter().flatten().any(|value| value == found.as_str()));
            match text("operator") {
                "In" => among,
                "NotIn" => !among,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}
