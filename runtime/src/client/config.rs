//! The connection to the API server and its credentials.

use std::path::PathBuf;
use std::time::Duration;

use kube_client::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube_client::{Client as KubeClient, Config};

use super::kubeconfig::{Choice, ChoiceError};
use super::{Client, Settings};

/// The source of the connection's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `--kubeconfig`.
    File(PathBuf),
    /// `KUBECONFIG` or the default file, else the pod's service account.
    Inferred,
    /// As kubectl finds it, and what a person chose.
    Chosen(Choice),
}

/// How long a person waits for a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// There is no usable connection; the configuration must be fixed. The messages of kube-client contain their causes, so
/// they are not sources of these errors.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig file cannot be used.
    #[error("--kubeconfig={} cannot be used: {reason}; check it with: kubectl --kubeconfig={} version", path.display(), path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: KubeconfigError,
    },
    /// Neither a kubeconfig nor a service account was found.
    #[error(
        "no cluster configuration; pass --kubeconfig=FILE, export KUBECONFIG, or run in a pod with a service account \
         ({0})"
    )]
    Infer(InferConfigError),
    /// What a person chose cannot be had.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The parameters are not usable, for example because a certificate is unreadable.
    #[error("the connection to the cluster cannot be set up: {0}; check it with: kubectl version")]
    Client(kube_client::Error),
}

/// Reads the configuration and builds a client; sends nothing yet.
pub async fn connect(source: &Source, mut settings: Settings) -> Result<Client, ConnectError> {
    let mut config = match source {
        Source::File(path) => {
            let unusable = |reason| ConnectError::Kubeconfig {
                path: path.clone(),
                reason,
            };
            let file = Kubeconfig::read_from(path).map_err(unusable)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(unusable)?
        }
        Source::Inferred => Config::infer().await.map_err(ConnectError::Infer)?,
        Source::Chosen(choice) => {
            let mut config = choice.config().await?;
            config.connect_timeout = Some(PATIENCE);
            config
        }
    };
    // This would repeat writes whose response was lost.
    config.default_retry = false;
    settings.host = config
        .cluster_url
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let client = KubeClient::try_from(config).map_err(ConnectError::Client)?;
    Ok(Client::new(client, settings))
}
