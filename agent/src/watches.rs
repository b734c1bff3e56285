//! Watches of the node's own objects: its NodeImage, its pods, what is asked for them, and how they are probed. The
//! API server filters; nothing is listed again but after a gap of a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kruise_agent_core::Event;
use kruise_api::nodeimage::KIND;
use kruise_api::path::segment;
use kruise_api::{definition::Kind, kinds};
use kruise_plan_kit::ResourceId;
use kruise_runtime::discovery::{DiscoveryError, discover};
use kruise_runtime::follow::{End, Scope, follow, follow_while_served};
use kruise_runtime::{Client, Followable, Served};
use kruise_views::NodePodView;
use kube_cache::{Backoff, Delta, SharedInformer, Version};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::health::Checks;
use crate::host::Jitter;
use crate::served::Versions;

/// NodeImages.
pub(crate) const NODE_IMAGES: ResourceId = ResourceId::of(&KIND);

/// From one look for a collection to the next while the cluster does not serve it, after the first ones.
const RECHECK: Duration = Duration::from_mins(5);
/// How many times is looked sooner: definitions that are installed now are seen at once.
const SOON: u32 = 5;
/// What was served for so long is looked for at once when it is not served any more.
const STEADY: Duration = Duration::from_mins(1);

/// What is needed to watch.
#[derive(Clone)]
pub(crate) struct Watching {
    pub(crate) client: Client,
    pub(crate) node: String,
    pub(crate) checks: Arc<Checks>,
    /// Receives what has changed.
    pub(crate) news: mpsc::UnboundedSender<Event>,
    pub(crate) jitter: Jitter,
    pub(crate) stop: watch::Receiver<bool>,
}

/// A collection that is followed in whichever version the cluster serves.
pub(crate) struct Collection<'a> {
    pub(crate) kind: &'static Kind,
    /// Which of its objects, as a parameter of a query.
    pub(crate) selector: String,
    /// Whether the cluster does not serve it.
    pub(crate) is_not_served: &'a AtomicBool,
    /// What does not happen meanwhile, for the log.
    pub(crate) consequence: &'static str,
    /// Receives what the cluster serves.
    pub(crate) versions: Versions,
}

impl Watching {
    /// Follows the NodeImage of the node.
    pub(crate) async fn node_image(self, versions: Versions) {
        let collection = Collection {
            kind: &KIND,
            selector: field("metadata.name", &self.node),
            is_not_served: &self.checks.is_not_served,
            consequence: "no image is pulled",
            versions,
        };
        self.follow_served(&collection, &self.checks.node_image, |delta| {
            let event = delta.new.map_or(Event::NodeImageDeleted, Event::NodeImage);
            send(&self.news, event);
        })
        .await;
    }

    /// Follows a collection in the version that the cluster serves. When the cluster does not serve it any more,
    /// the version is chosen again.
    pub(crate) async fn follow_served<T: Followable>(
        &self,
        collection: &Collection<'_>,
        informer: &SharedInformer<T>,
        mut on_delta: impl FnMut(Delta<T>) + Send,
    ) {
        let mut backoff = Backoff::new();
        loop {
            let found = self.discover(collection).await;
            let Ok(path) = found.collection(ResourceId::of(collection.kind), None) else {
                return;
            };
            collection.versions.set(found);
            let scope = Scope::new(path, Some(collection.selector.clone()));
            let began = Instant::now();
            let (jitter, stop) = (|| (self.jitter)(), self.stop.clone());
            match follow_while_served(&self.client, &scope, informer, &mut on_delta, jitter, stop).await {
                End::Stopped => return,
                End::NotServed => tracing::info!("{} is not served any more", scope.path),
            }
            if began.elapsed() > STEADY {
                backoff.reset();
            }
            // API servers learn of a definition one after the other.
            sleep(backoff.delay((self.jitter)())).await;
        }
    }

    /// Follows the pods of the node. Those that are of no concern are not passed on.
    pub(crate) async fn pods(self, informer: SharedInformer<NodePodView>) {
        let news = self.news.clone();
        let scope = Scope::new("/api/v1/pods", Some(field("spec.nodeName", &self.node)));
        let (mut first, lists) = (None, informer.clone());
        self.follow(&scope, &informer, |delta: Delta<NodePodView>| {
            let first = *first.get_or_insert_with(|| lists.synced_version());
            if let Some(event) = of_pod(delta, first) {
                send(&news, event);
            }
        })
        .await;
    }

    async fn follow<T: Followable>(
        self,
        scope: &Scope,
        informer: &SharedInformer<T>,
        on_delta: impl FnMut(Delta<T>) + Send,
    ) {
        let refresh = Notify::new();
        follow(
            &self.client,
            scope,
            informer,
            &refresh,
            on_delta,
            || (self.jitter)(),
            self.stop,
        )
        .await;
    }

    /// Waits until the cluster serves the collection.
    async fn discover(&self, collection: &Collection<'_>) -> Served {
        let mut backoff = Backoff::new();
        let mut looks = 0_u32;
        loop {
            looks = looks.saturating_add(1);
            let pause = match discover(&self.client, &kinds::ALL, &[]).await {
                Ok(served) if served.version(ResourceId::of(collection.kind)).is_some() => {
                    collection.is_not_served.store(false, Ordering::Relaxed);
                    return served;
                }
                Ok(_) => {
                    if !collection.is_not_served.swap(true, Ordering::Relaxed) {
                        let (kind, consequence) = (collection.kind.name(), collection.consequence);
                        tracing::info!("the cluster does not serve {kind}: {consequence}");
                    }
                    if looks > SOON {
                        RECHECK
                    } else {
                        backoff.delay((self.jitter)())
                    }
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

/// Objects of the node with one field of this value, as a parameter of a query.
pub(crate) fn field(name: &str, value: &str) -> String {
    format!("fieldSelector={}", segment(&format!("{name}={value}")))
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

pub(crate) fn send(news: &mpsc::UnboundedSender<Event>, event: Event) {
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
        assert_eq!(
            field("spec.nodeName", "n/1"),
            "fieldSelector=spec.nodeName%3Dn%2F1"
        );
    }
}
