//! The watch of the ContainerRecreateRequests for pods of the node. The API server filters by the labels that the webhook of
//! the manager sets.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kruise_agent_core::{Event, RequestView};
use kruise_api::containerrecreaterequest::KIND;
use kruise_api::names::containerrecreaterequest::{ACTIVE, NODE_NAME};
use kruise_api::path::segment;
use kruise_plan_kit::ResourceId;
use kruise_runtime::Served;
use kruise_runtime::discovery::{DiscoveryError, discover};
use kruise_runtime::follow::Scope;
use kube_cache::{Backoff, Delta};
use tokio::time::sleep;

use crate::watches::{Watching, send};

/// ContainerRecreateRequests.
pub(crate) const REQUESTS: ResourceId = ResourceId::of(&KIND);

/// From one look for them to the next while the cluster does not serve them.
const RECHECK: Duration = Duration::from_mins(5);

impl Watching {
    /// Follows the requests of the node, in the version that the cluster serves, which is stored in `served`.
    pub(crate) async fn requests(self, served: Arc<OnceLock<Served>>) {
        let found = self.discover_requests().await;
        let Ok(path) = found.collection(REQUESTS, None) else {
            return;
        };
        // Nobody else sets it.
        let _first = served.set(found);
        let informer = self.checks.requests.clone();
        let news = self.news.clone();
        let scope = scope(path, &self.node);
        self.follow(&scope, &informer, |delta| {
            for event in events(delta) {
                send(&news, event);
            }
        })
        .await;
    }

    /// Waits until the cluster serves them.
    async fn discover_requests(&self) -> Served {
        let mut backoff = Backoff::new();
        loop {
            let pause = match discover(&self.client, &[]).await {
                Ok(served) if served.version(REQUESTS).is_some() => {
                    self.checks
                        .are_requests_not_served
                        .store(false, Ordering::Relaxed);
                    return served;
                }
                Ok(_) => {
                    if !self.checks.are_requests_not_served.swap(true, Ordering::Relaxed) {
                        tracing::info!(
                            "the cluster does not serve {}: no container is recreated on request",
                            KIND.name()
                        );
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

fn scope(path: String, node: &str) -> Scope {
    let selector = format!("{NODE_NAME}={node},{ACTIVE}=true");
    Scope {
        path,
        selector: Some(format!("labelSelector={}", segment(&selector))),
    }
}

/// What a change means: a request of the same name may be another one.
fn events(delta: Delta<RequestView>) -> impl Iterator<Item = Event> {
    let uid = delta.new.as_ref().map(|new| new.uid.clone());
    let gone = delta.old.filter(|old| Some(&old.uid) != uid.as_ref());
    let gone = gone.map(|old| Event::RequestDeleted { uid: old.uid.clone() });
    gone.into_iter().chain(delta.new.map(Event::Request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selector_is_encoded() {
        let scope = scope("/p".into(), "n1");
        assert_eq!(
            scope.selector.unwrap(),
            "labelSelector=crr.apps.kruise.io%2Fnode-name%3Dn1%2Ccrr.apps.kruise.io%2Factive%3Dtrue"
        );
    }

    #[test]
    fn a_request_that_replaces_one_of_its_name_is_another_one() {
        let request = |uid: &str| {
            Some(Arc::new(RequestView {
                uid: uid.into(),
                ..RequestView::default()
            }))
        };
        let of = |old, new| events(Delta { old, new }).collect::<Vec<_>>();
        let gone = |uid: &str| Event::RequestDeleted { uid: uid.into() };
        let is = |uid| Event::Request(request(uid).unwrap());
        assert_eq!(of(None, request("a")), [is("a")]);
        assert_eq!(of(request("a"), request("a")), [is("a")]);
        assert_eq!(of(request("a"), request("b")), [gone("a"), is("b")]);
        assert_eq!(of(request("a"), None), [gone("a")]);
    }
}
