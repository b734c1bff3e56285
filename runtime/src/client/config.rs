//! Where the API server is and who we are to it.

use std::path::PathBuf;

use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client as KubeClient, Config};

use super::{Client, Settings};

/// Where the connection's parameters come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `--kubeconfig`.
    File(PathBuf),
    /// `KUBECONFIG` or the default file, else the pod's service account.
    Inferred,
}

/// There is no usable connection; nothing to do but to fix the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig file cannot be used.
    #[error("the kubeconfig cannot be used; check --kubeconfig")]
    Kubeconfig(#[from] kube_client::config::KubeconfigError),
    /// Neither a kubeconfig nor a service account was found.
    #[error("no cluster configuration; pass --kubeconfig, or run in a pod with a service account")]
    Infer(#[from] kube_client::config::InferConfigError),
    /// The parameters do not make a connection, for example because a certificate is unreadable.
    #[error("the connection to the cluster cannot be set up")]
    Client(#[from] kube_client::Error),
}

/// Reads the configuration and builds a client; sends nothing yet.
pub async fn connect(source: &Source, mut settings: Settings) -> Result<Client, ConnectError> {
    let mut config = match source {
        Source::File(path) => {
            let file = Kubeconfig::read_from(path)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?
        }
        Source::Inferred => Config::infer().await?,
    };
    // Repeats writes whose reply was lost.
    config.default_retry = false;
    settings.host = config
        .cluster_url
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    Ok(Client::new(KubeClient::try_from(config)?, settings))
}
