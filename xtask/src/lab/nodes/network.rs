//! The network of one cluster's real nodes: a bridge on this machine, on which every node and every pod has an address.

use std::path::Path;

use anyhow::{Context, Result};

use super::super::address::Address;
use super::tool;

/// Where the plugins of the container network are installed.
const PLUGINS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
const NEEDED: [&str; 3] = ["bridge", "host-local", "loopback"];
/// Where plugins leave notes of the pods they served, whatever folder is configured.
const NOTES: &str = "/var/lib/cni/results";
const CONFIG: &str = include_str!("../../../assets/nodes/network.json");
/// Second numbers of the address ranges that are tried.
const RANGES: std::ops::Range<u8> = 88..120;

/// A bridge and its range of addresses, `10.RANGE.0.0/16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// Of the bridge, and of the network in the notes of plugins.
    pub(super) name: String,
    range: u8,
}

impl Network {
    /// A network in a range that no interface of the machine is in, with a name of its own.
    pub(super) fn choose() -> Result<Self> {
        let taken = tool::run("ip", &["-4", "-oneline", "address", "show"])?;
        let range = free(&taken).context("every range of addresses from 10.88 to 10.119 is taken")?;
        Ok(Self::of(range))
    }

    fn of(range: u8) -> Self {
        Self {
            name: format!("kruise-lab-{range}"),
            range,
        }
    }

    /// Makes the bridge, with an address for each node and one for the API server.
    pub(super) fn create(&self, nodes: u32) -> Result<()> {
        tool::run("ip", &["link", "add", &self.name, "type", "bridge"])?;
        let others = [self.gateway(), self.api().host].into_iter();
        for address in others.chain((0..nodes).map(|node| self.node(node))) {
            let address = format!("{address}/16");
            tool::run("ip", &["address", "add", &address, "dev", &self.name])?;
        }
        tool::run("ip", &["link", "set", &self.name, "up"]).map(drop)
    }

    /// Address of a node.
    pub(super) fn node(&self, node: u32) -> String {
        format!("10.{}.0.{}", self.range, node + 2)
    }

    /// Where the API server listens if containers use it. There is no kube-proxy, so the address of its Service is
    /// one of the bridge.
    pub(crate) fn api(&self) -> Address {
        Address {
            host: format!("10.{}.240.1", self.range),
            port: 443,
            services: format!("10.{}.240.0/20", self.range),
        }
    }

    /// The plugins' configuration of one node, whose data is kept in `data`.
    pub(super) fn config(&self, node: u32, data: &Path) -> Result<String> {
        let pods = |last: u8| format!("10.{}.{}.{last}", self.range, node + 1);
        tool::fill(
            CONFIG,
            &[
                ("network", &self.name),
                ("bridge", &self.name),
                ("data", &data.display().to_string()),
                ("subnet", &format!("10.{}.0.0/16", self.range)),
                ("first", &pods(2)),
                ("last", &pods(250)),
                ("gateway", &self.gateway()),
            ],
        )
    }

    fn gateway(&self) -> String {
        format!("10.{}.0.1", self.range)
    }
}

/// Every network that may be chosen.
pub(super) fn all() -> impl Iterator<Item = Network> {
    RANGES.map(Network::of)
}

/// Removes the bridge of this name.
pub(super) fn remove(name: &str) -> Result<()> {
    if Path::new("/sys/class/net").join(name).exists() {
        tool::run("ip", &["link", "delete", name])?;
    }
    Ok(())
}

/// Removes what plugins noted of a container, of which only the end of the path, its id, matters.
pub(super) fn forget(container: &Path) -> Result<()> {
    let id = container.file_name().unwrap_or_default().to_string_lossy();
    for note in std::fs::read_dir(NOTES).into_iter().flatten().flatten() {
        if note.file_name().to_string_lossy().contains(&format!("-{id}-")) {
            std::fs::remove_file(note.path())?;
        }
    }
    Ok(())
}

/// The folder with all plugins that are needed.
pub(super) fn plugins() -> Option<&'static str> {
    PLUGINS.into_iter().find(|folder| {
        NEEDED
            .iter()
            .all(|plugin| Path::new(folder).join(plugin).exists())
    })
}

/// The first range that is in none of these addresses.
fn free(taken: &str) -> Option<u8> {
    RANGES.into_iter().find(|range| {
        !taken
            .split_whitespace()
            .any(|word| word.starts_with(&format!("10.{range}.")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_in_which_an_interface_is_will_not_be_taken() {
        let taken = "1: lo    inet 127.0.0.1/8 scope host lo\n2: eth0    inet 10.88.3.4/24 brd 10.88.3.255 scope global";
        assert_eq!(free(taken), Some(89));
        assert_eq!(free(""), Some(88));
    }

    #[test]
    fn the_configuration_of_a_node_has_a_range_of_its_own_for_pods() {
        let network = Network {
            name: "lab1".into(),
            range: 90,
        };
        let text = network.config(1, Path::new("/data")).unwrap();
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        let range = &config["plugins"][0]["ipam"]["ranges"][0][0];
        assert_eq!(range["rangeStart"], "10.90.2.2");
        assert_eq!(config["plugins"][0]["ipam"]["dataDir"], "/data/addresses");
        assert_eq!(network.node(1), "10.90.0.3");
        let api = network.api();
        assert_eq!(
            (api.to_string().as_str(), api.services.as_str()),
            ("10.90.240.1:443", "10.90.240.0/20")
        );
    }
}
