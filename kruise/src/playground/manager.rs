//! The production manager, as one that runs outside a cluster on this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use go_compat::flags::FlagSet;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::probe::page;
use crate::manager::{Config, FLAGS, Sockets, run};

/// Where everything listens: other machines have no business here.
pub(super) const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Pause between two questions whether the manager is ready.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest time to get ready.
const LIMIT: Duration = Duration::from_secs(60);

/// A manager's doors, open before it starts, so that everybody knows its ports.
pub(super) struct Doors {
    sockets: Sockets,
    webhooks: SocketAddr,
    metrics: SocketAddr,
    health: SocketAddr,
}

impl Doors {
    /// Free ports.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let open = async || {
            let listener = TcpListener::bind((HOST, 0)).await;
            let listener = listener.with_context(|| format!("there is no free port on {HOST}"))?;
            let address = listener.local_addr()?;
            anyhow::Ok((listener, address))
        };
        let ((webhooks, webhooks_at), (metrics, metrics_at), (health, health_at)) =
            (open().await?, open().await?, open().await?);
        Ok(Self {
            sockets: Sockets {
                webhooks,
                metrics: Some(metrics),
                health: Some(health),
            },
            webhooks: webhooks_at,
            metrics: metrics_at,
            health: health_at,
        })
    }

    /// What the API calls.
    pub(super) fn webhook_url(&self) -> String {
        format!("https://{}", self.webhooks)
    }
}

/// A manager in this process.
#[derive(Debug)]
pub(super) struct Manager {
    task: JoinHandle<anyhow::Result<()>>,
    stop: watch::Sender<bool>,
    health: SocketAddr,
    /// Where its metrics are.
    pub(super) metrics: SocketAddr,
    /// It has ended by itself, and said why.
    is_over: bool,
}

impl Manager {
    /// Starts a manager that keeps its certificates in `folder`. There is no other one, so it elects no leader.
    pub(super) fn start(kubeconfig: &Path, folder: &Path, doors: Doors) -> anyhow::Result<Self> {
        let flags = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--enable-leader-election=false".to_owned(),
        ];
        let environment = |name: &str| match name {
            "WEBHOOK_HOST" => Some(HOST.to_string()),
            "WEBHOOK_PORT" => Some(doors.webhooks.port().to_string()),
            "WEBHOOK_CERT_DIR" => Some(folder.join("certificates").display().to_string()),
            _ => None,
        };
        let values = FlagSet::new(FLAGS).parse(flags)?;
        let config = Config::new(&values, &environment)?;
        let (stop, stopping) = watch::channel(false);
        let task = tokio::spawn(run(config, Some(doors.sockets), stopping));
        Ok(Self {
            task,
            stop,
            health: doors.health,
            metrics: doors.metrics,
            is_over: false,
        })
    }

    /// Returns once its webhooks are registered and answer.
    pub(super) async fn ready(&mut self) -> anyhow::Result<()> {
        let health = self.health;
        let poll = async {
            loop {
                // not even connections are answered before the webhooks are registered
                if let Ok(Some(_)) = page(health, "/readyz").await {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = poll => Ok(()),
            error = ended(&mut self.task) => {
                self.is_over = true;
                Err(error)
            }
            () = tokio::time::sleep(LIMIT) => bail!("the manager is not ready after {} s", LIMIT.as_secs()),
        }
    }

    /// Returns, with the reason, if it ends by itself.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        let error = ended(&mut self.task).await;
        self.is_over = true;
        error
    }

    /// Stops it and waits until it has ended.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        if self.is_over {
            return Ok(());
        }
        // If it has just ended, nobody listens.
        let _ = self.stop.send(true);
        self.task.await?
    }
}

/// Why a task that nobody stopped ended.
async fn ended(task: &mut JoinHandle<anyhow::Result<()>>) -> anyhow::Error {
    match task.await {
        Ok(Ok(())) => anyhow::anyhow!("the manager ended"),
        Ok(Err(error)) => error.context("the manager"),
        Err(error) => anyhow::Error::new(error).context("the manager"),
    }
}
