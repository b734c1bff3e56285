//! What the process of an agent needs from its caller.

use std::sync::Arc;

use kruise_runtime::Client;

use crate::runtime::Node;

/// Returns uniform random numbers, which spread retries.
pub type Jitter = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Whether the addresses of pods lead to pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodNetwork {
    /// They do, from this machine.
    #[default]
    Present,
    /// They do not: on this machine they are those of others, or of nobody. Nothing is sent to them, and probes and
    /// hooks that are requests or connections cannot be run.
    Absent,
}

/// Network, time, randomness and node of an agent. With those of a simulation, all that it does follows from them.
#[derive(Clone)]
pub struct Host {
    /// For requests to the API server. Its clock is that of the agent.
    pub client: Client,
    /// Where container runtimes are.
    pub node: Arc<dyn Node>,
    /// For requests and connections to pods.
    pub pods: PodNetwork,
    /// Spreads retries of watches.
    pub jitter: Jitter,
}
