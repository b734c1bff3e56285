//! The verbosity of the log while the manager runs: every replica follows the ConfigMap with the settings of
//! administrators.

use kruise_frame::{
    config::Config,
    logging,
    registration::agent,
    settings::{self, CONFIGURATION},
};
use kruise_runtime::Client;
use tokio::sync::{Notify, watch};

use super::watched_objects::on_change;

/// The key of the ConfigMap. Its text is like that of `--vmodule`, and takes its place.
pub const KEY: &str = "Log_Verbosity";

/// Follows the setting until `stop` turns true.
pub(super) async fn follow(config: &Config, client: &Client, stop: watch::Receiver<bool>) {
    let client = client.named(&agent("log-verbosity"));
    let namespace = &config.webhook.namespace;
    let collection = settings::collection(namespace);
    let changed = Notify::new();
    let applied = async {
        let mut last = None;
        loop {
            changed.notified().await;
            let text = match settings::read(&client, namespace, KEY).await {
                Ok(text) => text,
                Err(error) => {
                    tracing::warn!(%error, "the ConfigMap {CONFIGURATION} cannot be read; verbosity stays");
                    continue;
                }
            };
            if text == last {
                continue;
            }
            apply(config, text.as_deref());
            last = text;
        }
    };
    tokio::select! {
        biased;
        () = on_change(&client, &collection, CONFIGURATION, stop, || changed.notify_one()) => {}
        () = applied => {}
    }
}

/// Without a text the flags count again.
fn apply(config: &Config, text: Option<&str>) {
    let (verbosity, of_flags) = config.verbosity();
    let of = text.unwrap_or(of_flags);
    match logging::set(verbosity, of) {
        Ok(()) => tracing::info!(verbosity = of, "verbosity changed"),
        Err(error) => tracing::warn!("{CONFIGURATION}: {KEY}: {error:#}; verbosity stays"),
    }
}
