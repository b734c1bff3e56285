//! The loopback ports of one cluster: a block that starts at the API server's.

use std::net::TcpListener;

use anyhow::{Result, bail};

/// First block that is tried.
const FIRST: u16 = 26443;
/// Ports per block.
const BLOCK: u16 = 20;
/// Blocks that are tried.
const BLOCKS: u16 = 25;

/// Ports of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    base: u16,
}

impl Ports {
    /// The block at `asked`, or the first block that is free.
    pub(crate) fn choose(asked: Option<u16>) -> Result<Self> {
        Self::choose_among(asked, is_free)
    }

    fn choose_among(asked: Option<u16>, is_free: impl Fn(u16) -> bool) -> Result<Self> {
        if let Some(base) = asked {
            let ports = Self { base };
            if let Some(taken) = ports.all().into_iter().find(|port| !is_free(*port)) {
                bail!("port {taken} is taken; choose another --port or leave it out");
            }
            return Ok(ports);
        }
        let mut blocks = (0..BLOCKS).map(|block| Self {
            base: FIRST + block * BLOCK,
        });
        match blocks.find(|ports| ports.all().into_iter().all(&is_free)) {
            Some(ports) => Ok(ports),
            None => bail!("no free block of ports from {FIRST} on; choose one with --port"),
        }
    }

    pub(crate) fn apiserver(self) -> u16 {
        self.base
    }

    pub(crate) fn etcd(self) -> u16 {
        self.base + 1
    }

    pub(crate) fn etcd_peer(self) -> u16 {
        self.base + 2
    }

    pub(crate) fn controller_manager(self) -> u16 {
        self.base + 3
    }

    pub(crate) fn scheduler(self) -> u16 {
        self.base + 4
    }

    pub(crate) fn kwok(self) -> u16 {
        self.base + 5
    }

    pub(crate) fn registry(self) -> u16 {
        self.base + 6
    }

    fn all(self) -> [u16; 7] {
        [
            self.apiserver(),
            self.etcd(),
            self.etcd_peer(),
            self.controller_manager(),
            self.scheduler(),
            self.kwok(),
            self.registry(),
        ]
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_named_when_asked_for_and_passed_over_otherwise() {
        let taken = FIRST + 5;
        let is_free = |port| port != taken;
        let error = Ports::choose_among(Some(FIRST), is_free).unwrap_err().to_string();
        assert!(error.contains(&taken.to_string()), "{error}");
        assert_eq!(
            Ports::choose_among(None, is_free).unwrap().apiserver(),
            FIRST + BLOCK
        );
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_free() {
        let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        assert!(!is_free(held.local_addr().unwrap().port()));
    }

    #[test]
    fn without_a_free_block_the_way_out_is_named() {
        let error = Ports::choose_among(None, |_| false).unwrap_err().to_string();
        assert!(error.contains("--port"), "{error}");
    }
}
