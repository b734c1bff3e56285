//! The cluster of a command, as kubectl's flags choose it.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use kruise_program::command;
use kruise_runtime::{
    ApiError, Client,
    client::{Choice, Source},
};
use serde::de::IgnoredAny;
use tokio::time::timeout;

/// Time of the first request, after which the server counts as dead.
const FIRST: Duration = Duration::from_secs(8);
/// Time of every other request, unless a flag says another.
const REQUEST: Duration = Duration::from_secs(30);
/// Heading of these flags in the help.
const HEADING: &str = "Connection";

/// Which cluster, and whose rights. The rules are kubectl's.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Connection {
    /// Namespace; without it that of the kubeconfig's context.
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Kubeconfig; without it those that `KUBECONFIG` lists, ~/.kube/config, or the cluster's own.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, instead of the current one.
    #[arg(long, global = true, value_name = "NAME", help_heading = HEADING)]
    context: Option<String>,
    /// Cluster of the kubeconfig, instead of that of the context.
    #[arg(long, global = true, value_name = "NAME", help_heading = HEADING)]
    cluster: Option<String>,
    /// User of the kubeconfig, instead of that of the context.
    #[arg(long, global = true, value_name = "NAME", help_heading = HEADING)]
    user: Option<String>,
    /// Address of the API server, instead of that of the kubeconfig.
    #[arg(short, long, global = true, value_name = "URL", help_heading = HEADING)]
    server: Option<String>,
    /// User to act as; a service account is `system:serviceaccount:NAMESPACE:NAME`.
    #[arg(long = "as", global = true, value_name = "USER", help_heading = HEADING)]
    act_as: Option<String>,
    /// Group to act as; may be given again.
    #[arg(long = "as-group", global = true, requires = "act_as", value_name = "GROUP", help_heading = HEADING)]
    act_as_groups: Vec<String>,
    /// UID to act as.
    #[arg(long = "as-uid", global = true, requires = "act_as", value_name = "UID", help_heading = HEADING)]
    act_as_uid: Option<String>,
    /// Time that a request may take, such as 45s or 2m; 0 for no limit.
    #[arg(long, global = true, value_name = "TIME", help_heading = HEADING, value_parser = duration)]
    request_timeout: Option<Duration>,
}

/// The API server did not answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the API server {host}: {why}")]
pub struct Unreachable {
    host: String,
    why: String,
}

impl Unreachable {
    /// That server, with the last cause of the failure: those before it are the ways there.
    pub fn new(host: &str, error: &ApiError) -> Self {
        let why = error.to_string();
        let last = why.rsplit(": ").next().unwrap_or_default().to_owned();
        Self {
            host: host.to_owned(),
            why: last,
        }
    }
}

impl Connection {
    /// The current context, with this namespace.
    pub fn in_namespace(namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..Self::default()
        }
    }

    /// The namespace of a command: that of the flag, else that of the context.
    pub fn namespace<'n>(&'n self, client: &'n Client) -> &'n str {
        let given = self.namespace.as_deref();
        given.unwrap_or_else(|| client.default_namespace())
    }

    /// The namespace of the flag.
    pub fn given_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The kubeconfig of the flag.
    pub fn kubeconfig(&self) -> Option<&PathBuf> {
        self.kubeconfig.as_ref()
    }

    /// A client of the cluster for the command of this name, once its server has answered.
    ///
    /// # Errors
    /// [`Unreachable`] within ten seconds; if the kubeconfig cannot be used.
    pub async fn connect(&self, command: &str) -> anyhow::Result<Client> {
        let time = self.request_timeout.unwrap_or(REQUEST);
        let client = command::connect(command, &self.source(), time).await?;
        reach(&client, time.min(FIRST)).await?;
        Ok(client)
    }

    /// Where the connection's parameters are from.
    pub fn source(&self) -> Source {
        Source::Chosen(Choice {
            file: self.kubeconfig.clone(),
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
            server: self.server.clone(),
            act_as: self.act_as.clone(),
            act_as_groups: self.act_as_groups.clone(),
            act_as_uid: self.act_as_uid.clone(),
        })
    }
}

/// Fails if the server does not answer. A refusal is an answer.
async fn reach(client: &Client, time: Duration) -> Result<(), Unreachable> {
    let answer = timeout(time, client.get::<IgnoredAny>("/version")).await;
    match answer.unwrap_or(Err(ApiError::Timeout(time))) {
        Err(error @ (ApiError::Transport(_) | ApiError::Timeout(_))) => {
            Err(Unreachable::new(client.host(), &error))
        }
        _ => Ok(()),
    }
}

/// A time as kubectl takes it: a number of seconds, or numbers with units.
fn duration(text: &str) -> Result<Duration, String> {
    /// For requests without a limit: a century.
    const NEVER: Duration = Duration::from_hours(876_000);
    let bad = || format!("{text} is no time; write it as 45s or 1m30s");
    let seconds = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => text
            .parse::<jiff::SignedDuration>()
            .map_err(|_| bad())?
            .try_into()
            .map_err(|_| bad())?,
    };
    Ok(if seconds.is_zero() { NEVER } else { seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_units_and_zero_is_none() {
        assert_eq!(duration("45"), Ok(Duration::from_secs(45)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("0").unwrap() > Duration::from_hours(1000));
        assert!(duration("soon").is_err() && duration("-1s").is_err());
    }

    #[test]
    fn the_last_cause_says_why() {
        let error = ApiError::Transport(
            "client error (Connect): tcp connect error: Connection refused (os error 111)".into(),
        );
        let text = Unreachable::new("here:1", &error).to_string();
        assert_eq!(
            text,
            "cannot reach the API server here:1: Connection refused (os error 111)"
        );
    }
}
