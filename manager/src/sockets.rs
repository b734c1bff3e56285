//! The sockets that a manager listens on.

use std::net::SocketAddr;

use anyhow::Context;
use kruise_frame::config::Config;
use kruise_server::address;
use tokio::net::TcpListener;

/// The sockets to listen on.
#[derive(Debug)]
pub struct Sockets {
    /// Webhooks, at the port of [`WebhookConfig`](kruise_frame::config::WebhookConfig).
    pub webhooks: TcpListener,
    /// Metrics, if they are served.
    pub metrics: Option<TcpListener>,
    /// Probes, if they are served.
    pub health: Option<TcpListener>,
}

impl Sockets {
    /// Binds the addresses of the configuration.
    pub fn bind(config: &Config) -> anyhow::Result<Self> {
        let optional = |address: Option<SocketAddr>, flag| address.map(|it| bind(it, flag)).transpose();
        Ok(Self {
            health: optional(config.health, "--health-probe-addr")?,
            metrics: optional(config.metrics, "--metrics-addr")?,
            webhooks: bind(address::every(config.webhook.port), "WEBHOOK_PORT")?,
        })
    }
}

fn bind(at: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    address::bind(at).with_context(|| format!("cannot listen on {at}; change {setting}"))
}
