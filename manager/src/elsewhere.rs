//! Widenings by other replicas, which the configuration shows.
//!
//! A replica may review a pod that needs an object which another replica has reviewed a moment ago, and which its
//! own watch has not delivered yet. Like API servers, it learns of the object from the configuration before the
//! object is stored.

use std::collections::BTreeMap;

use kruise_admission::manifests::MUTATING;
use kruise_api::{names::WIDENED_CONDITIONS, path::segment};
use kruise_kinds::WebhookCaches;
use kruise_runtime::{
    Client,
    caches::Jitter,
    follow::{Scope, follow},
};
use kruise_server::{configuration::widening, webhook_controller::Phase};
use kube_cache::{Delta, SharedInformer};
use serde::Deserialize;
use tokio::sync::{Notify, watch};

use super::registrar::collection_of_configurations;

/// The part of a configuration that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Configuration {
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    annotations: BTreeMap<String, String>,
}

kube_cache::cached!(Configuration, metadata);

/// Passes the widenings in the mutating configuration to the caches of reviews, until `stop` turns true.
pub(super) async fn follow_widenings(
    client: &Client,
    caches: &WebhookCaches,
    jitter: Jitter,
    stop: watch::Receiver<bool>,
) {
    let selector = format!("fieldSelector=metadata.name%3D{}", segment(MUTATING));
    let scope = Scope::new(collection_of_configurations(Phase::Mutating), Some(selector));
    let informer = SharedInformer::<Configuration>::new([]);
    let changed = |delta: Delta<Configuration>| {
        let annotations = delta.new.as_ref().map(|new| &new.metadata.annotations);
        let text = annotations.and_then(|annotations| annotations.get(WIDENED_CONDITIONS));
        let widened = text.map(|text| widening::read(text)).unwrap_or_default();
        caches.conditions_are_widened(&widened, client.now());
    };
    let refresh = Notify::new();
    follow(client, &scope, &informer, &refresh, changed, || jitter(), stop).await;
}
