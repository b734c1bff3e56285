//! Managers of one cluster behind one address.

use std::net::SocketAddr;

use kruise_plan_test_kit::Balancer;

use super::cluster::Cluster;
use super::openkruise::GATES;
use crate::command::free_address;
use crate::managers::Manager;

/// The managers, with the addresses of their metrics. One of them leads; all answer reviews.
pub(super) struct Managers(Vec<(Manager, SocketAddr)>);

impl Managers {
    /// Starts so many, and waits until all are ready.
    pub(super) fn start(api: &Cluster, replicas: usize) -> Self {
        let balancer = Balancer::start().unwrap();
        let host = format!("127.0.0.1:{}", balancer.port());
        let start = || {
            let metrics = free_address();
            let flags = [GATES, &format!("--metrics-addr={metrics}")];
            let mut manager = Manager::at(api.address, Some(host.clone()), &flags);
            manager.wait_ready();
            balancer.add(manager.webhooks.port());
            (manager, metrics)
        };
        Self(std::iter::repeat_with(start).take(replicas).collect())
    }

    /// Where their metrics are.
    pub(super) fn metrics(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|(_, metrics)| *metrics)
    }

    /// What they have logged.
    pub(super) fn log(&self) -> String {
        self.0.iter().map(|(manager, _)| manager.log()).collect()
    }

    /// Ends all of them.
    pub(super) fn end(&mut self) {
        for (manager, _) in &self.0 {
            manager.terminate();
        }
        for (manager, _) in &mut self.0 {
            assert_eq!(manager.wait_end(), Some(0), "{}", manager.log());
        }
    }
}
