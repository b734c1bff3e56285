//! Reviews in a manager: pure functions, and the caches and requests that look other objects up for them.
//!
//! A review that the caches suffice for is decided at once, on the thread that serves the connection. Any other asks the
//! API server within the time limit of its webhook, in which the first list of SidecarSets is waited for, too: no response
//! waits longer for a server that is slow or gone. It is 503 then, and the client tries again.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_admission::{
    Lookups, Options, Outcome, Request, Response,
    lookup::{Lookup, LookupResult, Pod},
    table::Webhook,
};
use kruise_api::meta::StringMap;
use kruise_runtime::{Client, metrics::PodMetrics};
use kruise_server::{review, webhook::Decision};
use kruise_views::{Labels, NodeView, PodView};
use kube_cache::{ObjectKey, SharedInformer};
use tokio::time::timeout;

use crate::{
    controllers,
    lookup::{Cache, Cached, LookupSource, Progress, Server},
};

/// What all reviews of a manager have in common.
pub(super) struct Reviews {
    options: Options,
    source: LookupSource<ReviewCache>,
    /// For the time.
    client: Client,
    /// Times of the steps of the pod webhook.
    metrics: PodMetrics,
}

/// What the watches of a manager show.
pub(super) struct ReviewCache {
    /// SidecarSets, namespaces and revisions.
    pub(super) lookups: controllers::Lookups,
    /// Pods, which a CloneSet may name.
    pub(super) pods: SharedInformer<PodView>,
    pub(super) nodes: SharedInformer<NodeView>,
    /// The manager's, where revisions of SidecarSets are.
    pub(super) namespace: String,
}

impl Reviews {
    /// With `client` for what is not in the caches.
    pub(super) fn new(options: Options, cache: ReviewCache, client: Client, metrics: PodMetrics) -> Self {
        let server = Some(Server {
            client: client.clone(),
            namespace: cache.namespace.clone(),
        });
        Self {
            options,
            source: LookupSource { cache, server },
            client,
            metrics,
        }
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.client.now()
    }

    /// Reviews a request, at once if the caches have all that is to be looked up.
    pub(super) fn decide(self: &Arc<Self>, webhook: Webhook, request: Request) -> Decision {
        let mut lookups = Lookups::default();
        let review = |lookups: &Lookups| self.review(webhook, &request, lookups);
        let progress = match self.source.advance(&review, &mut lookups) {
            Progress::Decided(response) => return sent(response).into(),
            progress => progress,
        };
        let reviews = self.clone();
        Decision::Later(Box::pin(async move {
            let review = |lookups: &Lookups| reviews.review(webhook, &request, lookups);
            let finished = reviews.source.finish(progress, &review, &mut lookups);
            let limit = webhook.time_limit().lookups;
            sent(match timeout(limit, finished).await {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => unavailable(&format!(
                    "the API server does not tell what it depends on: {}",
                    error.source
                )),
                Err(_) => unavailable("the API server is too slow to tell what it depends on"),
            })
        }))
    }

    fn review(&self, webhook: Webhook, request: &Request, lookups: &Lookups) -> Outcome {
        let mut watch = self.metrics.review();
        webhook.review(request, self.options, lookups, &mut |step, result| {
            watch.ended(step, result);
        })
    }
}

impl Cache for ReviewCache {
    fn get(&self, lookup: &Lookup) -> Cached {
        let at = |name: &str| ObjectKey::new("", name);
        match lookup {
            Lookup::SidecarSets => match self.lookups.all() {
                Some(sets) => Cached::Found(LookupResult::SidecarSets(sets)),
                None => Cached::NotSynced,
            },
            Lookup::NamespaceLabels(name) => {
                let namespace = self.lookups.namespaces.snapshot().get(&at(name));
                cached(namespace.map(|namespace| labels(namespace.labels())))
            }
            Lookup::NodeLabels(name) => {
                let node = self.nodes.snapshot().get(&at(name));
                cached(node.map(|node| labels(node.labels())))
            }
            Lookup::PodOwner { namespace, name } => {
                self.pod(&ObjectKey::new(namespace.as_str(), name.as_str()))
            }
            Lookup::Revision(wanted) => {
                let revision = self.lookups.revision(&self.namespace, wanted);
                cached(revision.map(LookupResult::Object))
            }
            // There is no cache of these; of the first it is known that it is not among the others.
            Lookup::SidecarSet(_) | Lookup::Setting(_) | Lookup::Path(_) | Lookup::DryRunCreate { .. } => {
                Cached::Absent
            }
        }
    }
}

impl ReviewCache {
    /// A pod that is not in the first list and came by no event does not exist: lists of names can be long, and most of a
    /// long one are gone already.
    fn pod(&self, key: &ObjectKey) -> Cached {
        match self.pods.snapshot().get(key) {
            Some(pod) => Cached::Found(LookupResult::Pod(owner(&pod))),
            None if self.pods.synced_version().is_some() => Cached::Found(LookupResult::NotFound),
            None => Cached::Absent,
        }
    }
}

fn cached(result: Option<LookupResult>) -> Cached {
    result.map_or(Cached::Absent, Cached::Found)
}

fn labels(labels: &Labels) -> LookupResult {
    let labels = labels
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    LookupResult::Labels(labels.collect::<StringMap>())
}

fn owner(pod: &PodView) -> Pod {
    Pod {
        controller: pod.controller.as_ref().map(|owner| owner.uid.to_string()),
        deleting: pod.deleting,
    }
}

fn unavailable(why: &str) -> Response {
    Response::Deny {
        code: 503,
        message: format!("no decision can be made yet: {why}; try again"),
    }
}

/// As the server sends it.
pub(super) fn sent(response: Response) -> review::Response {
    match response {
        Response::Allow { patch, warnings } => review::Response::Allow { patch, warnings },
        Response::Deny { code, message } => review::Response::Deny { code, message },
    }
}

#[cfg(test)]
mod tests;
