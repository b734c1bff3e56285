//! The connection to the API server and its credentials.

use std::path::PathBuf;
use std::time::Duration;

use kube_client::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube_client::{Client as KubeClient, Config};

use super::{Choice, Client, Settings};

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
    /// No kubeconfig exists, and this is no pod.
    #[error("no cluster: {}", missing(.0))]
    NoCluster(Vec<PathBuf>),
    /// The context that was chosen does not exist, or none was.
    #[error("{}", unknown(name, known))]
    Context {
        /// Its name; empty if none was chosen.
        name: String,
        /// Names of the contexts that there are.
        known: Vec<String>,
    },
    /// The kubeconfig does not say what a connection needs.
    #[error("the kubeconfig cannot be used: {0}")]
    Chosen(KubeconfigError),
    /// The address of the API server that was chosen cannot be read.
    #[error("--server={0} is no address; write it as https://HOST:PORT")]
    Server(String),
    /// The parameters are not usable, for example because a certificate is unreadable.
    #[error("the connection to the cluster cannot be set up: {0}; check it with: kubectl version")]
    Client(kube_client::Error),
}

fn missing(files: &[PathBuf]) -> String {
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let verb = if files.len() == 1 { "does" } else { "do" };
    let looked = match files.as_slice() {
        [] => "there is no home folder".to_owned(),
        _ => format!("{} {verb} not exist", files.join(", ")),
    };
    format!("{looked}, and this is no pod; pass --kubeconfig=FILE or export KUBECONFIG")
}

fn unknown(name: &str, known: &[String]) -> String {
    let known = known.join(", ");
    match (name, known.as_str()) {
        (_, "") => "the kubeconfig has no context".to_owned(),
        ("", _) => format!("the kubeconfig has no current context; choose one with --context: {known}"),
        _ => format!("context \"{name}\" does not exist; there are: {known}"),
    }
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
