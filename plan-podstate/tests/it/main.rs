//! Plans of PersistentPodStates.

mod generated;
mod properties;
mod scenarios;
mod takeover;
mod world;
