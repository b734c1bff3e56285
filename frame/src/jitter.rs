//! Random numbers of a manager with sockets; a simulation has its own.

#![allow(clippy::disallowed_types, reason = "here randomness comes from")]

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
};

/// A random number to spread retries. The standard library seeds each hasher state with entropy, so that no crate for
/// randomness is needed.
pub fn jitter() -> u64 {
    RandomState::new().build_hasher().finish()
}
