//! The watch of the ContainerRecreateRequests for pods of the node. The API server filters by the labels that the
//! webhook of the manager sets.

use kruise_agent_core::{Event, RequestView};
use kruise_api::containerrecreaterequest::KIND;
use kruise_api::names::containerrecreaterequest::{ACTIVE, NODE_NAME};
use kruise_api::path::segment;
use kruise_plan_kit::ResourceId;
use kube_cache::Delta;

use std::sync::atomic::Ordering;

use crate::served::Versions;
use crate::watches::{Collection, Watching, send};

/// ContainerRecreateRequests.
pub(crate) const REQUESTS: ResourceId = ResourceId::of(&KIND);

impl Watching {
    /// Follows the requests of the node.
    pub(crate) async fn requests(self, versions: Versions) {
        if self.node.len() > LONGEST_LABEL {
            // The webhook of the manager refuses requests for such a node: nobody could find them.
            let node = &self.node;
            tracing::warn!(
                node,
                "the name of the node is too long for a label: no container is recreated on request"
            );
            self.checks.are_requests_not_served.store(true, Ordering::Relaxed);
            return;
        }
        let collection = Collection {
            kind: &KIND,
            selector: selector(&self.node),
            is_not_served: &self.checks.are_requests_not_served,
            consequence: "no container is recreated on request",
            versions,
        };
        self.follow_served(&collection, &self.checks.requests, |delta| {
            for event in events(delta) {
                send(&self.news, event);
            }
        })
        .await;
    }
}

/// The longest value of a label. Names of nodes may be longer.
const LONGEST_LABEL: usize = 63;

/// The requests of a node that are not finished, as a parameter of a query.
fn selector(node: &str) -> String {
    format!(
        "labelSelector={}",
        segment(&format!("{NODE_NAME}={node},{ACTIVE}=true"))
    )
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
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_selector_is_encoded() {
        assert_eq!(
            selector("n1"),
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
