//! How long things take on a node.

use std::time::Duration;

/// How long things take on a node. The defaults are what a small, healthy node with a registry nearby shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timings {
    /// A pod's sandbox and network: 800 ms.
    pub sandbox: Duration,
    /// Pull of an image of which the node has nothing: 5 s. A node pulls one image at a time.
    pub image_pull: Duration,
    /// Pull of an image when the node has another one of the same repository, whose layers it shares: 1.5 s.
    pub image_pull_shared: Duration,
    /// From image to running process: 400 ms.
    pub container_start: Duration,
    /// From the signal to the end of a process that takes it well: 1 s. The grace period and a sleeping `preStop` hook
    /// bound and lengthen it.
    pub container_stop: Duration,
    /// How long an init container runs: 1 s.
    pub init_run: Duration,
    /// How often it is tried to create a container that lacks a ConfigMap or Secret: 10 s.
    pub config_retry: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            sandbox: Duration::from_millis(800),
            image_pull: Duration::from_secs(5),
            image_pull_shared: Duration::from_millis(1500),
            container_start: Duration::from_millis(400),
            container_stop: Duration::from_secs(1),
            init_run: Duration::from_secs(1),
            config_retry: Duration::from_secs(10),
        }
    }
}

impl Timings {
    /// A twentieth of the defaults: for demonstrations and tests.
    pub fn fast() -> Self {
        let all = Self::default();
        Self {
            sandbox: all.sandbox / 20,
            image_pull: all.image_pull / 20,
            image_pull_shared: all.image_pull_shared / 20,
            container_start: all.container_start / 20,
            container_stop: all.container_stop / 20,
            init_run: all.init_run / 20,
            config_retry: all.config_retry / 20,
        }
    }
}
