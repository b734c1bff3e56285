//! Caches of reviews that tests fill.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_runtime::caches::Caches;
use kube_cache::{Event, SharedInformer, Version};
use serde_json::{Value, json};

use super::WebhookCaches;

/// Applies a first list of these objects.
pub fn fill<T: kube_cache::Cached>(informer: &SharedInformer<T>, objects: Vec<T>) {
    for event in [
        Event::ListStarted,
        Event::Page(objects),
        Event::ListDone {
            version: Version::new(100),
        },
    ] {
        informer.apply(event).unwrap();
    }
}

/// These objects, each with a uid and a version.
pub fn read_all<T: serde::de::DeserializeOwned>(objects: &[Value]) -> Vec<T> {
    let with_version = |(index, object): (usize, &Value)| {
        let mut object = object.clone();
        object["metadata"]["uid"] = json!(format!("u{index}"));
        object["metadata"]["resourceVersion"] = json!((index + 1).to_string());
        serde_json::from_value(object).unwrap()
    };
    objects.iter().enumerate().map(with_version).collect()
}

/// Caches after their first lists.
pub fn filled(sets: &[Value], namespaces: &[Value], revisions: &[Value]) -> WebhookCaches {
    let caches = empty(Some("v1beta1"));
    fill_with(&caches, sets, namespaces, revisions);
    caches
}

/// Caches before their first lists, of a cluster that serves SidecarSets in this version.
pub fn empty(version: Option<&'static str>) -> WebhookCaches {
    let served: Vec<_> = version
        .map(|version| (&kruise_api::sidecarset::KIND, version))
        .into_iter()
        .collect();
    of_cluster(&served, &kruise_admission::Options::DEFAULT)
}

/// Caches before their first lists, of a cluster that serves these kinds.
pub fn of_cluster(
    served: &[(&'static Kind, &'static str)],
    options: &kruise_admission::Options,
) -> WebhookCaches {
    let served = Arc::new(served.iter().copied().collect());
    WebhookCaches::new(&mut Caches::default(), &served, options)
}

/// Applies the first lists.
pub fn fill_with(caches: &WebhookCaches, sets: &[Value], namespaces: &[Value], revisions: &[Value]) {
    fill(&caches.namespaces, read_all(namespaces));
    fill(&caches.revisions, read_all(revisions));
    fill(&caches.sidecarsets, read_all(sets));
}
