//! The production manager, as one that runs outside a cluster on this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use go_compat::flags::FlagSet;
use kruise_frame::config::Config;
use kruise_kinds as controllers;
use kruise_manager::{Embedding, FLAGS, Sockets, run};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::folder::Folder;
use super::kubeconfig;

/// Where everything listens: reachable from this machine only.
pub(super) const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The kubeconfig of manager and agents, in the folder. That of the user is written when the manager is ready.
pub(super) fn kubeconfig_in(folder: &Folder) -> PathBuf {
    folder.path().join("manager.kubeconfig")
}

/// The listeners of a manager. They are open before it starts, because webhook configurations need the port.
pub(super) struct Listeners {
    sockets: Sockets,
    webhooks: SocketAddr,
    metrics: SocketAddr,
}

impl Listeners {
    /// Free ports.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let open = async || {
            let listener = TcpListener::bind((HOST, 0)).await;
            let listener = listener.with_context(|| format!("there is no free port on {HOST}"))?;
            let address = listener.local_addr()?;
            anyhow::Ok((listener, address))
        };
        let ((webhooks, webhooks_at), (metrics, metrics_at)) = (open().await?, open().await?);
        Ok(Self {
            sockets: Sockets {
                webhooks,
                metrics: Some(metrics),
                health: None,
            },
            webhooks: webhooks_at,
            metrics: metrics_at,
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
    ready: oneshot::Receiver<()>,
    /// Where its metrics are.
    pub(super) metrics: SocketAddr,
    /// It has ended by itself, and the reason was returned.
    is_over: bool,
}

impl Manager {
    /// Starts a manager of the API at an address. Its own kubeconfig and its certificates are in `folder`. `kruise
    /// explain` reads the settings of the manager from its lease, so it has one. It renews the lease rarely: there
    /// is no other manager, and the requests that a reader counts are those for pods. `gates` is the value of
    /// `--feature-gates`.
    pub(super) fn start(
        api: SocketAddr,
        folder: &Folder,
        listeners: Listeners,
        gates: &str,
    ) -> anyhow::Result<Self> {
        let kubeconfig = kubeconfig_in(folder);
        std::fs::write(&kubeconfig, kubeconfig::text(api))
            .with_context(|| format!("{} cannot be written", kubeconfig.display()))?;
        let flags = [
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--protection-log-path={}", folder.path().display()),
            "--leader-election-lease-duration=8760h".to_owned(),
            "--leader-election-renew-deadline=8000h".to_owned(),
            "--leader-election-retry-period=1m".to_owned(),
            format!("--feature-gates={gates}"),
            // On a cluster this spares nodes that have only just joined; here somebody waits for it.
            "--nodeimage-creation-delay=0s".to_owned(),
        ];
        let environment = |name: &str| match name {
            "WEBHOOK_HOST" => Some(HOST.to_string()),
            "WEBHOOK_PORT" => Some(listeners.webhooks.port().to_string()),
            "WEBHOOK_CERT_DIR" => Some(folder.certificates().display().to_string()),
            _ => None,
        };
        let values = FlagSet::new(&FLAGS).parse(flags)?;
        let config = Config::new(&values, controllers::limits(), controllers::kinds(), &environment)?
            .in_local_time(&|name| std::env::var(name).ok());
        let (stop, stopping) = watch::channel(false);
        let (is_ready, ready) = oneshot::channel();
        let embedding = Embedding {
            sockets: listeners.sockets,
            ready: is_ready,
        };
        let task = tokio::spawn(run(config, Some(embedding), stopping));
        Ok(Self {
            task,
            stop,
            ready,
            metrics: listeners.metrics,
            is_over: false,
        })
    }

    /// Returns once its webhooks are registered and it has seen what there is.
    pub(super) async fn ready(&mut self) -> anyhow::Result<()> {
        match (&mut self.ready).await {
            Ok(()) => Ok(()),
            // the sender is dropped when the manager ends
            Err(_) => Err(self.failed().await),
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
        // If it has just ended, there is no receiver.
        let _ = self.stop.send(true);
        self.task.await?
    }
}

/// Why a task ended without being stopped.
async fn ended(task: &mut JoinHandle<anyhow::Result<()>>) -> anyhow::Error {
    match task.await {
        Ok(Ok(())) => anyhow::anyhow!("the manager ended"),
        Ok(Err(error)) => error.context("the manager"),
        Err(error) => anyhow::Error::new(error).context("the manager"),
    }
}
