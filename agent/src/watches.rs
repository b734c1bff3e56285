//! Watches of the node's own objects: its NodeImage and its pods. The API server filters; nothing is listed again but after a
//! gap of a watch.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kruise_agent_core::{Event, NodeImageView};
use kruise_api::nodeimage::KIND;
use kruise_api::path::segment;
use kruise_plan_kit::ResourceId;
use kruise_runtime::discovery::{DiscoveryError, discover};
use kruise_runtime::follow::{FirstList, Scope, follow};
use kruise_runtime::{Client, Served};
use kruise_views::NodePodView;
use kube_cache::{Backoff, Cached, Delta, SharedInformer, Version};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;

use crate::health::Checks;

/// NodeImages.
pub(crate) const NODE_IMAGES: ResourceId = ResourceId::of(&KIND);

/// From one look for NodeImages to the next while the cluster does not serve them.
const RECHECK: Duration = Duration::from_mins(5);

/// What is needed to watch.
#[derive(Clone)]
pub(crate) struct Watching {
    pub(crate) client: Client,
    pub(crate) node: String,
    pub(crate) checks: Arc<Checks>,
    /// Receives what has changed.
    pub(crate) news: mpsc::UnboundedSender<Event>,
    pub(crate) jitter: fn() -> u64,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Watching {
    /// Follows the NodeImage of the node, in the version that the cluster serves, which is stored in `served`.
    pub(crate) async fn node_image(self, served: Arc<OnceLock<Served>>) {
        let found = self.discover().await;
        let Ok(path) = found.collection(NODE_IMAGES, None) else {
            return;
        };
        // Nobody else sets it.
        let _first = served.set(found);
        let informer = self.checks.node_image.clone();
        let news = self.news.clone();
        let scope = scope(path, "metadata.name", &self.node);
        self.follow(&scope, &informer, |delta: Delta<NodeImageView>| {
            send(&news, delta.new.map_or(Event::NodeImageDeleted, Event::NodeImage));
        })
        .await;
    }

    /// Follows the pods of the node. Those that are of no concern are not passed on.
    pub(crate) async fn pods(self, informer: SharedInformer<NodePodView>) {
        let news = self.news.clone();
        let scope = scope("/api/v1/pods".to_owned(), "spec.nodeName", &self.node);
        let (mut first, lists) = (None, informer.clone());
        self.follow(&scope, &informer, |delta: Delta<NodePodView>| {
            let first = *first.get_or_insert_with(|| lists.synced_version());
            if let Some(event) = of_pod(delta, first) {
                send(&news, event);
            }
        })
        .await;
    }

    async fn follow<T: Cached + serde::de::DeserializeOwned>(
        self,
        scope: &Scope,
        informer: &SharedInformer<T>,
        on_delta: impl FnMut(Delta<T>),
    ) {
        let refresh = Notify::new();
        follow(
            &self.client,
            scope,
            informer,
            &refresh,
            on_delta,
            self.jitter,
            self.stop,
        )
        .await;
    }

    /// Waits until the cluster serves NodeImages.
    async fn discover(&self) -> Served {
        let mut backoff = Backoff::new();
        loop {
            let pause = match discover(&self.client, &[]).await {
                Ok(served) if served.version(NODE_IMAGES).is_some() => {
                    self.checks.is_not_served.store(false, Ordering::Relaxed);
                    return served;
                }
                Ok(_) => {
                    if !self.checks.is_not_served.swap(true, Ordering::Relaxed) {
                        tracing::info!("the cluster does not serve {}: no image is pulled", KIND.name());
                    }
                    RECHECK
                }
                Err(DiscoveryError::Unreachable { error, .. } | DiscoveryError::Refused { error, .. }) => {
                    tracing::warn!("the API server cannot be asked what it serves: {error}");
                    backoff.delay((self.jitter)())
                }
            };
            sleep(pause).await;
        }
    }
}

fn scope(path: String, field: &str, value: &str) -> Scope {
    let selector = format!("{field}={value}");
    Scope {
        path,
        selector: Some(format!("fieldSelector={}", segment(&selector))),
        first: FirstList::Paged,
    }
}

/// A change of a pod that the agent reports on, or did before. `first` is the version of the first list.
fn of_pod(delta: Delta<NodePodView>, first: Option<Version>) -> Option<Event> {
    let is_reported = |pod: &Arc<NodePodView>| pod.is_reported;
    if !delta.old.iter().chain(&delta.new).any(is_reported) {
        return None;
    }
    Some(match (delta.old, delta.new) {
        (old, Some(pod)) => Event::Pod {
            initial: old.is_none() && Version::of(&*pod).is_some_and(|version| Some(version) <= first),
            pod,
        },
        (Some(old), None) => Event::PodDeleted { uid: old.uid.clone() },
        (None, None) => return None,
    })
}

fn send(news: &mpsc::UnboundedSender<Event>, event: Event) {
    // It is not received any more when the process ends.
    let _unheard = news.send(event);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(version: &str, is_reported: bool) -> Arc<NodePodView> {
        Arc::new(NodePodView {
            uid: "u".into(),
            resource_version: version.into(),
            is_reported,
            ..NodePodView::default()
        })
    }

    #[test]
    fn pods_of_the_first_list_are_told_from_later_ones() {
        let first: Option<Version> = "7".parse().ok();
        for (version, initial) in [("3", true), ("7", true), ("8", false)] {
            let delta = Delta {
                old: None,
                new: Some(pod(version, true)),
            };
            let event = of_pod(delta, first);
            assert!(
                matches!(event, Some(Event::Pod { initial: found, .. }) if found == initial),
                "{version}"
            );
        }
    }

    #[test]
    fn pods_of_no_concern_are_not_passed_on() {
        let delta = |old: Option<bool>, new: Option<bool>| Delta {
            old: old.map(|is_reported| pod("1", is_reported)),
            new: new.map(|is_reported| pod("2", is_reported)),
        };
        assert_eq!(of_pod(delta(None, Some(false)), None), None);
        assert_eq!(of_pod(delta(Some(false), Some(false)), None), None);
        assert_eq!(of_pod(delta(Some(false), None), None), None);
        let gone = of_pod(delta(Some(true), None), None);
        assert_eq!(gone, Some(Event::PodDeleted { uid: "u".into() }));
        assert!(
            of_pod(delta(Some(true), Some(false)), None).is_some(),
            "it was reported on"
        );
    }

    #[test]
    fn selectors_are_encoded() {
        let scope = scope("/p".into(), "spec.nodeName", "n/1");
        assert_eq!(scope.selector.unwrap(), "fieldSelector=spec.nodeName%3Dn%2F1");
    }
}
