//! Watches of single objects, each by its name: the Secret of the certificates, the webhook configurations and the
//! definitions. The rights for a watch with a name in its field selector can be granted for that name.

use kruise_frame::jitter::jitter;
use kruise_runtime::{
    Client,
    follow::{Scope, follow},
};
use kruise_server::{
    changes::{Changes, Reconciled},
    webhook_controller::{Settings, Source},
};
use kube_cache::SharedInformer;
use serde::Deserialize;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use kruise_api::path::DEFINITIONS;

use super::registrar::{collection_of_configurations, secrets};

/// The identity of an object; all else is skipped when it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Watched {
    metadata: Identity,
}

kube_cache::cached!(Watched, metadata);

/// Watches all objects that the webhook controller reconciles with these settings, and reports their changes, each in a
/// task of its own.
pub(super) fn report_changes(
    tasks: &mut JoinSet<()>,
    client: &Client,
    settings: &Settings,
    changes: &Changes,
    stop: &watch::Receiver<bool>,
) {
    for (object, path) in objects(settings) {
        let (client, changes, stop) = (client.clone(), changes.clone(), stop.clone());
        tasks.spawn(async move {
            let (collection, name) = path;
            on_change(&client, &collection, &name, stop, || {
                changes.report(object.clone());
            })
            .await;
        });
    }
}

/// Watches the object of this name, which need not exist. Calls `changed` when it is created, changed or deleted,
/// and at the start if it exists.
pub(super) async fn on_change(
    client: &Client,
    collection: &str,
    name: &str,
    stop: watch::Receiver<bool>,
    mut changed: impl FnMut() + Send,
) {
    let scope = Scope::new(collection, Some(format!("fieldSelector=metadata.name%3D{name}")));
    let informer = SharedInformer::<Watched>::new([]);
    let refresh = Notify::new();
    follow(client, &scope, &informer, &refresh, |_| changed(), jitter, stop).await;
}

/// The objects, with their collection and name.
fn objects(settings: &Settings) -> Vec<(Reconciled, (String, String))> {
    let secret = (settings.source != Source::Directory).then(|| {
        let path = (secrets(&settings.namespace), settings.secret.clone());
        (Reconciled::Secret, path)
    });
    let configurations = settings.configurations.iter().map(|(phase, name)| {
        let path = (collection_of_configurations(*phase), name.clone());
        (Reconciled::Configuration(*phase, name.clone()), path)
    });
    let definitions = settings.crds.iter().map(|name| {
        let path = (DEFINITIONS.to_owned(), name.clone());
        (Reconciled::Definition(name.clone()), path)
    });
    secret
        .into_iter()
        .chain(configurations)
        .chain(definitions)
        .collect()
}
