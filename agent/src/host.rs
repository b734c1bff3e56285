//! What the process of an agent needs from its caller.

use std::sync::Arc;

use kruise_runtime::Client;

use crate::runtime::Node;

/// Returns uniform random numbers, which spread retries.
pub type Jitter = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Network, time, randomness and node of an agent. With those of a simulation, all that it does follows from them.
#[derive(Clone)]
pub struct Host {
    /// For requests to the API server. Its clock is that of the agent.
    pub client: Client,
    /// Where container runtimes are.
    pub node: Arc<dyn Node>,
    /// Spreads retries of watches.
    pub jitter: Jitter,
}
