//! Ports of a node that pods use.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object::at;

/// Every address of a node.
const ALL: &str = "0.0.0.0";

/// A port of a node, on one address or on all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    number: i64,
    protocol: String,
    address: String,
}

impl Port {
    /// The ports that a pod takes of its node, for its containers and sidecars.
    pub(super) fn of_pod(pod: &Value) -> Vec<Self> {
        let list = |name: &str| at(pod, name).and_then(Value::as_array).into_iter().flatten();
        let sidecars =
            list("/spec/initContainers").filter(|one| one.get("restartPolicy") == Some(&"Always".into()));
        list("/spec/containers")
            .chain(sidecars)
            .filter_map(|container| container.get("ports")?.as_array())
            .flatten()
            .filter_map(Self::of)
            .collect()
    }

    fn of(port: &Value) -> Option<Self> {
        let text = |name: &str, otherwise: &str| {
            let given = port.get(name).and_then(Value::as_str);
            given
                .filter(|text| !text.is_empty())
                .unwrap_or(otherwise)
                .to_owned()
        };
        Some(Self {
            number: port.get("hostPort")?.as_i64().filter(|number| *number > 0)?,
            protocol: text("protocol", "TCP"),
            address: text("hostIP", ALL),
        })
    }

    fn excludes(&self, other: &Self) -> bool {
        let overlap = self.address == ALL || other.address == ALL || self.address == other.address;
        overlap && self.number == other.number && self.protocol == other.protocol
    }
}

/// Ports of a node that are taken, and by how many pods: those that name their node are not asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken(BTreeMap<Port, usize>);

impl Taken {
    pub(super) fn add(&mut self, ports: &[Port]) {
        for port in ports {
            *self.0.entry(port.clone()).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, ports: &[Port]) {
        for port in ports {
            let left = self.0.get(port).map_or(0, |count| count.saturating_sub(1));
            if left == 0 {
                self.0.remove(port);
            } else {
                self.0.insert(port.clone(), left);
            }
        }
    }

    /// Whether all of these are free.
    pub(super) fn leaves(&self, wanted: &[Port]) -> bool {
        !wanted
            .iter()
            .any(|port| self.0.keys().any(|taken| taken.excludes(port)))
    }
}
