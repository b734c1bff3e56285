//! Randomness of a process on a node.

#![allow(clippy::disallowed_types, reason = "here randomness comes from")]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A random number to spread retries. The standard library seeds each hasher state with entropy.
pub(crate) fn jitter() -> u64 {
    RandomState::new().build_hasher().finish()
}
