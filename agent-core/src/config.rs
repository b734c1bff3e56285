//! Settings of an agent.

use std::num::NonZeroU32;

/// Settings of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the node; also that of its NodeImage.
    pub node: Box<str>,
    /// Most images that are pulled at a time; `None` for no limit.
    pub max_pulls: Option<NonZeroU32>,
    /// Nothing is pulled while less than this share of the file system with the images is free, in percent. 0 pulls
    /// always.
    pub min_free_percent: u8,
    /// So many free bytes are enough, whatever share they are.
    pub enough_free: u64,
    /// Are hashes of environments reported, and containers with outdated ones restarted (gate
    /// `InPlaceUpdateEnvFromMetadata`)?
    pub env_from_metadata: bool,
    /// Any number that differs between nodes: it spreads the retries of their writes.
    pub seed: u64,
}

impl Config {
    /// Share of the disk that stays free, in percent. By default a kubelet deletes images and evicts pods below 15
    /// %; what it still tries to free is not filled again.
    pub const MIN_FREE_PERCENT: u8 = 10;

    /// On a large disk little of it is room for many images: 20 GiB.
    pub const ENOUGH_FREE: u64 = 20 << 30;

    /// The defaults: as many pulls as there are images, 10 % of the disk or 20 GiB stay free, environments are
    /// reported.
    pub fn new(node: &str) -> Self {
        Self {
            node: node.into(),
            max_pulls: None,
            min_free_percent: Self::MIN_FREE_PERCENT,
            enough_free: Self::ENOUGH_FREE,
            env_from_metadata: true,
            seed: u64::from(go_compat::hash::fnv1a_32(node.as_bytes())),
        }
    }
}
