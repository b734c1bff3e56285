//! Addresses of nodes and pods. No two living pods share one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Pods: 10.128.0.0/9.
const PODS: u32 = 0x0a80_0000;
const POD_COUNT: u32 = 1 << 23;
/// Nodes: 172.16.0.0/12.
const NODES: u32 = 0xac10_0000;

/// Who has which address.
#[derive(Clone, Debug, Default)]
pub(in crate::nodes) struct Addresses {
    nodes: BTreeMap<String, u32>,
    pods: BTreeSet<u32>,
    last: u32,
}

impl Addresses {
    /// A node's address: always the same.
    pub(in crate::nodes) fn of_node(&mut self, name: &str) -> String {
        let next = self.nodes.len() as u32 + 1;
        let number = *self.nodes.entry(name.to_owned()).or_insert(next);
        Ipv4Addr::from_bits(NODES + number).to_string()
    }

    /// The address that a pod has already, or a free one. An address is not used again at once.
    pub(super) fn of_pod(&mut self, shown: Option<&str>) -> String {
        let shown = shown.and_then(|text| text.parse::<Ipv4Addr>().ok());
        if let Some(address) = shown {
            self.pods.insert(address.to_bits());
            return address.to_string();
        }
        for _ in 0..POD_COUNT {
            self.last = self.last % (POD_COUNT - 2) + 1;
            if self.pods.insert(PODS + self.last) {
                break;
            }
        }
        Ipv4Addr::from_bits(PODS + self.last).to_string()
    }

    pub(super) fn release(&mut self, address: &str) {
        if let Ok(address) = address.parse::<Ipv4Addr>() {
            self.pods.remove(&address.to_bits());
        }
    }
}
